"""One connection: receives frames, offers them one at a time as requests, sends the responses.

A channel is muted from the moment its request is complete until the response is sent, so responses
keep their order and a client that pipelines without reading cannot fill memory. Muting is a flag;
the loop is told to stop watching the socket only when bytes really arrive meanwhile, which spares
two system calls on most requests.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from network.frame import FrameReader, InvalidFrameSize
from network.request_channel import RequestChannel
from network.send_queue import Part, SendQueue

logger = logging.getLogger(__name__)

REQUESTS_PER_SLICE = 64
FLUSH_BYTES = 64 << 10


class Request:
    """A complete frame on its way to a handler, and the way back for its response."""

    __slots__ = ("channel", "frame", "on_abandoned", "received_at")

    def __init__(self, channel: "Channel", frame: bytearray, received_at: float) -> None:
        self.channel = channel
        self.frame = frame
        self.received_at = received_at
        self.on_abandoned: Callable[[], object] | None = None

    def respond(self, parts: Sequence[Part]) -> None:
        """Send the response; an empty one (acks=0) only lets the next request in."""
        self.channel.complete(self, parts)

    def close_connection(self) -> None:
        self.channel.close()


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """What all channels of one processor share."""

    listener_name: str
    security_protocol: str
    max_request_size: int
    scratch: memoryview
    request_channel: RequestChannel
    on_closed: Callable[["Channel"], None]


class Channel:
    """A connected client socket."""

    __slots__ = (
        "_context",
        "_flushing_blocked",
        "_in_flight",
        "_loop",
        "_outgoing",
        "_pumping",
        "_reader",
        "_reading",
        "_sock",
        "closed",
        "last_active",
        "peer_host",
        "peer_port",
    )

    def __init__(
        self, sock: socket.socket, context: ChannelContext, loop: asyncio.AbstractEventLoop
    ) -> None:
        peer = sock.getpeername()
        self.peer_host: str = peer[0]
        self.peer_port: int = peer[1]
        self.last_active = loop.time()
        self.closed = False
        self._sock = sock
        self._context = context
        self._loop = loop
        self._reader = FrameReader(context.max_request_size)
        self._outgoing = SendQueue()
        self._in_flight: Request | None = None
        self._pumping = False
        self._reading = False
        self._flushing_blocked = False

    def __str__(self) -> str:
        return f"connection {self.peer_host}:{self.peer_port} on {self._context.listener_name}"

    @property
    def listener_name(self) -> str:
        return self._context.listener_name

    @property
    def security_protocol(self) -> str:
        return self._context.security_protocol

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

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        if self._flushing_blocked:
            self._loop.remove_writer(self._sock.fileno())
        self._outgoing.clear()
        self._reader.frames.clear()
        abandoned, self._in_flight = self._in_flight, None
        if abandoned is not None and abandoned.on_abandoned is not None:
            abandoned.on_abandoned()
        self._sock.close()
        self._context.on_closed(self)

    def complete(self, request: Request, parts: Sequence[Part]) -> None:
        """The response to the request in flight; dropped when the connection is gone."""
        if self.closed:
            return
        assert self._in_flight is request, "one request at a time, answered once"
        self._in_flight = None
        self._outgoing.add(parts)
        if not self._pumping:
            self._flush()
            self._pump()
        elif len(parts) > 1 or self._outgoing.pending_bytes >= FLUSH_BYTES:
            self._flush()

    # --- receiving -------------------------------------------------------------------------

    def _on_readable(self) -> None:
        if self._muted:
            self._pause_reading()
            self._close_if_peer_left()
            return
        try:
            count = self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except InvalidFrameSize as error:
            logger.warning("Closing %s: %s", self, error)
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

    @property
    def _muted(self) -> bool:
        return self._in_flight is not None or bool(self._reader.frames) or self._flushing_blocked

    def _close_if_peer_left(self) -> None:
        """What a peer sent before it left is still handled: with acks=0 that is a promise."""
        if self._reader.frames:
            return
        try:
            left = not self._sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            left = True
        if left:
            self.close()

    def _pump(self) -> None:
        """Offer complete frames, one after the other, until one has to wait."""
        if self._pumping or self.closed:
            return
        self._pumping = True
        offered = 0
        frames = self._reader.frames
        while frames and self._in_flight is None and not self._flushing_blocked:
            request = Request(self, frames.popleft(), self.last_active)
            self._in_flight = request
            direct = offered < REQUESTS_PER_SLICE
            if not self._context.request_channel.submit(request, direct=direct):
                self._in_flight = None
                frames.appendleft(request.frame)
                self._context.request_channel.when_room(self._pump)
                break
            offered += 1
        self._pumping = False
        self._flush()
        if not self._reading and not self._muted:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self._sock.fileno(), self._on_readable)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._sock.fileno())

    # --- sending ---------------------------------------------------------------------------

    def _flush(self) -> None:
        if self.closed or self._flushing_blocked or not self._outgoing.pending_bytes:
            return
        if not self._write():
            self._flushing_blocked = True
            self._loop.add_writer(self._sock.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        if self._write() and not self.closed:
            self._flushing_blocked = False
            self._loop.remove_writer(self._sock.fileno())
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
