"""An acceptor listens on one endpoint and hands new connections round-robin to its processors."""

import asyncio
import errno
import itertools
import logging
import socket
from collections.abc import Sequence

from network.processor import Processor

logger = logging.getLogger(__name__)

BACKLOG = 512
ACCEPTS_PER_TURN = 64
PAUSE_WHEN_OUT_OF_DESCRIPTORS_SECONDS = 0.2
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def listen(host: str, port: int, *, receive_buffer_bytes: int = -1) -> socket.socket:
    """A listening socket; port 0 takes a free one, an empty host every interface."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual_stack = not host and socket.has_dualstack_ipv6()
    sock = socket.socket(socket.AF_INET6 if dual_stack else family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual_stack:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.setblocking(False)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


class Acceptor:
    """Accepts the connections of one listener."""

    def __init__(
        self, sock: socket.socket, processors: Sequence[Processor], *, send_buffer_bytes: int
    ) -> None:
        self._sock = sock
        self._send_buffer_bytes = send_buffer_bytes
        self._next_processor = itertools.cycle(processors)
        self._paused: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        port: int = self._sock.getsockname()[1]
        return port

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._sock.fileno(), self._on_connections)

    def stop(self) -> None:
        """Stop listening; connections that were accepted stay."""
        if self._sock.fileno() < 0:
            return
        if self._paused is not None:
            self._paused.cancel()
        asyncio.get_running_loop().remove_reader(self._sock.fileno())
        self._sock.close()

    def _on_connections(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                connection, _peer = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_RESOURCES:
                    raise
                self._pause(error)
                return
            self._hand_over(connection)

    def _hand_over(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._send_buffer_bytes > 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        except OSError as error:
            logger.debug("A connection was gone before it was set up: %s", error)
            connection.close()
            return
        next(self._next_processor).accept(connection)

    def _pause(self, error: OSError) -> None:
        """Out of descriptors: stop asking for a while instead of spinning."""
        logger.error("Connections are not accepted for a moment: %s", error)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._sock.fileno())
        self._paused = loop.call_later(PAUSE_WHEN_OUT_OF_DESCRIPTORS_SECONDS, self.start)
