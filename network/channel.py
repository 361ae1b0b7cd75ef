"""One connection: receives frames, offers them one at a time as requests, sends the responses.

A channel is muted from the moment its request is complete until the response is sent (and longer
when throttled), so responses keep their order and a client that pipelines without reading cannot
fill memory. Muting is a flag; the loop is told to stop watching the socket only when bytes really
arrive meanwhile, which spares two system calls on most requests.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from network.frame import FrameReader, InvalidFrameSize
from network.memory_pool import MemoryPool
from network.metrics import ListenerCounters
from network.request import Request
from network.request_channel import RequestChannel
from network.request_log import describe, is_enabled, log_completed
from network.send_queue import Part, SendQueue

logger = logging.getLogger(__name__)

REQUESTS_PER_SLICE = 64
FLUSH_BYTES = 64 << 10

# Reasons, as bits, for which no further request is taken from a connection
SENDING = 1
THROTTLED = 2
DRAINING = 4


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """What all channels of one processor share."""

    listener_name: str
    security_protocol: str
    max_request_size: int
    scratch: memoryview
    request_channel: RequestChannel
    memory_pool: MemoryPool | None
    counters: ListenerCounters
    on_closed: Callable[["Channel"], None]


class Channel:
    """A connected client socket."""

    __slots__ = (
        "_charged",
        "_context",
        "_held",
        "_in_flight",
        "_loop",
        "_outgoing",
        "_pumping",
        "_reader",
        "_reading",
        "_sock",
        "_throttle_timer",
        "_unsent",
        "_waits_for_memory",
        "address",
        "closed",
        "last_active",
        "peer_host",
        "peer_port",
    )

    def __init__(
        self,
        sock: socket.socket,
        address: str,
        context: ChannelContext,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`address` is the peer's as limits count it."""
        peer = sock.getpeername()
        self.address = address
        self.peer_host: str = peer[0]
        self.peer_port: int = peer[1]
        self.last_active = loop.time()
        self.closed = False
        self._sock = sock
        self._context = context
        self._loop = loop
        self._reader = FrameReader(context.max_request_size)
        self._outgoing = self._make_send_queue()
        self._in_flight: Request | None = None
        self._unsent: list[Request] = []
        self._held = 0
        self._pumping = False
        self._reading = False
        self._throttle_timer: asyncio.TimerHandle | None = None
        self._charged = 0
        self._waits_for_memory = False

    def __str__(self) -> str:
        return f"connection {self.peer_host}:{self.peer_port} on {self._context.listener_name}"

    def _make_send_queue(self) -> SendQueue:
        return SendQueue()

    @property
    def listener_name(self) -> str:
        return self._context.listener_name

    @property
    def security_protocol(self) -> str:
        return self._context.security_protocol

    @property
    def peer_certificate(self) -> bytes | None:
        """What the peer has shown of itself, in DER; only TLS has any."""
        return None

    @property
    def pending_bytes(self) -> int:
        """Bytes in memory or promised from files that wait for this connection."""
        return self._reader.buffered_bytes + self._outgoing.pending_bytes

    @property
    def is_quiet(self) -> bool:
        """Nothing in flight and nothing left to send."""
        return self._in_flight is None and not self._outgoing.pending_bytes

    def open(self) -> None:
        self._resume_reading()

    def drain(self) -> None:
        """Take no further request; what is in flight is still answered."""
        self._held |= DRAINING

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        if self._held & SENDING:
            self._loop.remove_writer(self._sock.fileno())
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
        self._outgoing.clear()
        self._reader.clear()
        self._unsent.clear()
        if self._charged and self._context.memory_pool is not None:
            self._context.memory_pool.give_back(self._charged)
            self._charged = 0
        abandoned, self._in_flight = self._in_flight, None
        if abandoned is not None and abandoned.on_abandoned is not None:
            abandoned.on_abandoned()
        self._close_socket()
        self._context.on_closed(self)

    def _close_socket(self) -> None:
        self._sock.close()

    def complete(self, request: Request, parts: Sequence[Part], throttle_ms: int) -> None:
        """The response to the request in flight; dropped when the connection is gone."""
        if self.closed:
            return
        assert self._in_flight is request, "one request at a time, answered once"
        self._in_flight = None
        request.on_abandoned = None  # it knows who answers, who knows it: a circle
        request.responded_at = perf_counter()
        if is_enabled():
            request.description = request.description or describe(request.frame)
        self.release(request)
        outgoing = self._outgoing
        before = outgoing.pending_bytes
        outgoing.add(parts)
        request.response_bytes = outgoing.pending_bytes - before
        self._unsent.append(request)
        if throttle_ms > 0:
            self._throttle(request, throttle_ms / 1000)
        if not self._pumping:
            self._flush()
            self._pump()
        elif len(parts) > 1 or outgoing.pending_bytes >= FLUSH_BYTES:
            self._flush()

    def release(self, request: Request) -> None:
        """Free the memory of a request's frame."""
        freed = request.drop_frame()
        if self._charged and freed and self._context.memory_pool is not None:
            self._charged -= freed
            self._context.memory_pool.give_back(freed)

    # --- receiving -------------------------------------------------------------------------

    def _on_readable(self) -> None:
        if self._muted:
            self._context.counters.mutes += 1
            self._pause_reading()
            self._close_if_peer_left()
            return
        pool = self._context.memory_pool
        if pool is not None and pool.is_exhausted and not self._reader.is_mid_frame:
            self._wait_for_memory(pool)
            return
        try:
            count = self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except InvalidFrameSize as error:
            logger.warning("Closing %s: %s", self, error)
            self._context.counters.broken_frames += 1
            self.close()
            return
        except OSError as error:
            logger.debug("Closing %s: %s", self, error)
            self.close()
            return
        if not count:
            self.close()
            return
        self.last_active = self._loop.time()
        if pool is not None:
            self._charge(pool)
        if self._reader.frames:
            self._pump()

    def _receive(self) -> int:
        target = self._reader.direct_target()
        if target is not None:
            count = self._sock.recv_into(target)
            self._reader.received_directly(count)
        else:
            scratch = self._context.scratch
            count = self._sock.recv_into(scratch)
            self._reader.feed(scratch[:count])
        return count

    def _charge(self, pool: MemoryPool) -> None:
        """Bring what the pool knows up to what frames hold now; none is in flight here."""
        reserved = self._reader.reserved_bytes
        pool.take(reserved - self._charged)
        self._charged = reserved

    def _wait_for_memory(self, pool: MemoryPool) -> None:
        self._context.counters.memory_mutes += 1
        self._waits_for_memory = True
        self._pause_reading()
        pool.when_available(self._memory_is_available)

    def _memory_is_available(self) -> None:
        self._waits_for_memory = False
        self._resume_reading()

    @property
    def _muted(self) -> bool:
        return self._in_flight is not None or self._held != 0 or bool(self._reader.frames)

    def _close_if_peer_left(self) -> None:
        """What a peer sent before it left is still handled: with acks=0 that is a promise."""
        if self._reader.frames:
            return
        try:
            left = not self._peek()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            left = True
        if left:
            self.close()

    def _peek(self) -> bytes:
        return self._sock.recv(1, socket.MSG_PEEK)

    def _pump(self) -> None:
        """Offer complete frames, one after the other, until one has to wait."""
        if self._pumping or self.closed:
            return
        self._pumping = True
        frames = self._reader.frames
        if frames:
            self._offer(frames)
        self._pumping = False
        self._flush()
        if not self._reading and not self._muted:
            self._resume_reading()

    def _offer(self, frames: "deque[bytearray]") -> None:
        offered = 0
        request_channel = self._context.request_channel
        now = perf_counter()
        while frames and self._in_flight is None and not self._held:
            request = Request(self, frames.popleft(), now)
            self._in_flight = request
            if not request_channel.submit(request, direct=offered < REQUESTS_PER_SLICE):
                self._in_flight = None
                frames.appendleft(request.frame)
                request_channel.when_room(request, self._pump)
                break
            offered += 1
            now = request.responded_at

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed and not self._waits_for_memory:
            self._reading = True
            self._loop.add_reader(self._sock.fileno(), self._on_readable)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._sock.fileno())

    # --- sending ---------------------------------------------------------------------------

    def _flush(self) -> None:
        if self.closed or not self._unsent or self._held & SENDING:
            return
        began = perf_counter()
        if not self._outgoing.pending_bytes or self._write():
            self._all_sent(began)
        else:
            self._held |= SENDING
            self._loop.add_writer(self._sock.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        began = perf_counter()
        if self._write() and not self.closed:
            self._held &= ~SENDING
            self._loop.remove_writer(self._sock.fileno())
            self._all_sent(began)
            self._pump()

    def _write(self) -> bool:
        """True when nothing is left to be done: all was sent, or the connection is gone."""
        try:
            done = self._outgoing.write_to(self._sock)
        except OSError as error:
            logger.debug("Closing %s: %s", self, error)
            self.close()
            return True
        self.last_active = self._loop.time()
        return done

    def _all_sent(self, began: float) -> None:
        ended = perf_counter()
        unsent, self._unsent = self._unsent, []
        metrics = self._context.request_channel.metrics
        for request in unsent:
            metrics.record(request, began, ended)
        if is_enabled():
            for request in unsent:
                log_completed(request, began, ended)

    def _throttle(self, request: Request, seconds: float) -> None:
        """As in Kafka the time runs from the response, and reading waits for both."""
        self._context.counters.throttles += 1
        request.throttle_seconds = seconds
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
        self._held |= THROTTLED
        self._throttle_timer = self._loop.call_later(seconds, self._throttle_is_over)

    def _throttle_is_over(self) -> None:
        self._throttle_timer = None
        self._held &= ~THROTTLED
        self._pump()
