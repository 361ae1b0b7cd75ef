"""A processor owns the connections that an acceptor has handed to it.

It opens them in the order in which they came, closes those that have been idle for too long, and
closes all of them when it stops.
"""

import asyncio
import contextlib
import logging
import socket

from network.channel import Channel, ChannelContext
from network.request_channel import RequestChannel

logger = logging.getLogger(__name__)

SCRATCH_BYTES = 128 << 10
MIN_IDLE_CHECK_SECONDS = 0.05
MAX_IDLE_CHECK_SECONDS = 10.0


class Processor:
    """One of `num.network.threads` processors of a listener."""

    def __init__(
        self,
        name: str,
        *,
        listener_name: str,
        security_protocol: str,
        request_channel: RequestChannel,
        max_request_size: int,
        max_idle_seconds: float,
    ) -> None:
        self.name = name
        self.channels: set[Channel] = set()
        self._new_connections: asyncio.Queue[socket.socket] = asyncio.Queue()
        self._max_idle_seconds = max_idle_seconds
        self._context = ChannelContext(
            listener_name=listener_name,
            security_protocol=security_protocol,
            max_request_size=max_request_size,
            scratch=memoryview(bytearray(SCRATCH_BYTES)),
            request_channel=request_channel,
            on_closed=self.channels.discard,
        )
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._open_connections(), name=self.name),
            asyncio.create_task(self._close_idle_connections(), name=f"{self.name}-idle"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        while not self._new_connections.empty():
            self._new_connections.get_nowait().close()
        for channel in list(self.channels):
            channel.close()

    def accept(self, sock: socket.socket) -> None:
        """Take a connection over from the acceptor."""
        self._new_connections.put_nowait(sock)

    async def _open_connections(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            sock = await self._new_connections.get()
            try:
                channel = Channel(sock, self._context, loop)
            except OSError as error:
                logger.debug("A connection was gone before it was opened: %s", error)
                sock.close()
                continue
            self.channels.add(channel)
            channel.open()

    async def _close_idle_connections(self) -> None:
        if self._max_idle_seconds <= 0:
            return
        pause = self._max_idle_seconds / 4
        pause = min(max(pause, MIN_IDLE_CHECK_SECONDS), MAX_IDLE_CHECK_SECONDS)
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(pause)
            deadline = loop.time() - self._max_idle_seconds
            for channel in [one for one in self.channels if one.last_active < deadline]:
                logger.debug("Closing %s: idle for too long", channel)
                with contextlib.suppress(OSError):
                    channel.close()
