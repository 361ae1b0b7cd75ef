"""A processor owns the connections that an acceptor has handed to it.

It opens them in the order in which they came, closes those that have been idle for too long, and
closes all of them when it stops.
"""

import asyncio
import contextlib
import logging
import socket
from dataclasses import dataclass

from network.channel import Channel, ChannelContext
from network.connection_quotas import ConnectionQuotas
from network.memory_pool import MemoryPool
from network.metrics import ListenerCounters
from network.request_channel import RequestChannel
from network.tls.channel import TlsChannel, WrapsSockets

logger = logging.getLogger(__name__)

SCRATCH_BYTES = 128 << 10
MIN_IDLE_CHECK_SECONDS = 0.05
MAX_IDLE_CHECK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Listener:
    """What the processors of one listener have in common."""

    name: str
    security_protocol: str
    tls: WrapsSockets | None
    request_channel: RequestChannel
    memory_pool: MemoryPool | None
    quotas: ConnectionQuotas
    counters: ListenerCounters
    max_request_size: int
    max_idle_seconds: float


class Processor:
    """One of `num.network.threads` processors of a listener."""

    def __init__(self, name: str, listener: Listener) -> None:
        self.name = name
        self.listener = listener
        self.channels: set[Channel] = set()
        self._new_connections: asyncio.Queue[tuple[socket.socket, str]] = asyncio.Queue()
        self._context = ChannelContext(
            listener_name=listener.name,
            security_protocol=listener.security_protocol,
            max_request_size=listener.max_request_size,
            scratch=memoryview(bytearray(SCRATCH_BYTES)),
            request_channel=listener.request_channel,
            memory_pool=listener.memory_pool,
            counters=listener.counters,
            on_closed=self._forget,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._draining = False

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._open_connections(), name=self.name),
            asyncio.create_task(self._close_idle_connections(), name=f"{self.name}-idle"),
        ]

    def drain(self) -> None:
        """Take no further requests; those in flight are still answered."""
        self._draining = True
        for channel in self.channels:
            channel.drain()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        while not self._new_connections.empty():
            self._discard(*self._new_connections.get_nowait())
        for channel in list(self.channels):
            channel.close()

    def accept(self, sock: socket.socket, address: str) -> None:
        """Take a connection over from the acceptor, which has counted it."""
        self._new_connections.put_nowait((sock, address))

    def least_recently_used(self) -> Channel | None:
        return min(self.channels, key=lambda channel: channel.last_active, default=None)

    async def _open_connections(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            sock, address = await self._new_connections.get()
            try:
                channel = self._make_channel(sock, address, loop)
            except OSError as error:
                logger.debug("A connection was gone before it was opened: %s", error)
                self._discard(sock, address)
                continue
            self.channels.add(channel)
            if self._draining:
                channel.drain()
            channel.open()

    def _make_channel(
        self, sock: socket.socket, address: str, loop: asyncio.AbstractEventLoop
    ) -> Channel:
        if self.listener.tls is None:
            return Channel(sock, address, self._context, loop)
        return TlsChannel(self.listener.tls.wrap(sock), address, self._context, loop)

    def _discard(self, sock: socket.socket, address: str) -> None:
        sock.close()
        self.listener.quotas.remove(self.listener.name, address)

    def _forget(self, channel: Channel) -> None:
        self.channels.discard(channel)
        self.listener.quotas.remove(self.listener.name, channel.address)

    async def _close_idle_connections(self) -> None:
        """A look at all of them now and then costs less than keeping them in order of use."""
        longest = self.listener.max_idle_seconds
        if longest <= 0:
            return
        pause = min(max(longest / 4, MIN_IDLE_CHECK_SECONDS), MAX_IDLE_CHECK_SECONDS)
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(pause)
            deadline = loop.time() - longest
            for channel in [one for one in self.channels if one.last_active < deadline]:
                logger.debug("Closing %s: idle for too long", channel)
                self.listener.counters.idle += 1
                with contextlib.suppress(OSError):
                    channel.close()
