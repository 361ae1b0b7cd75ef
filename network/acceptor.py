"""An acceptor listens on one endpoint and hands new connections round-robin to its processors.

Where the listener has no free slot it stops accepting, so that newcomers wait in the backlog; an
address that has its share is refused.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from network.processor import Listener, Processor

logger = logging.getLogger(__name__)

BACKLOG = 512
ACCEPTS_PER_TURN = 64
PAUSE_WHEN_OUT_OF_DESCRIPTORS_SECONDS = 0.2
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
IPV4_MAPPED = "::ffff:"


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
        self,
        sock: socket.socket,
        listener: Listener,
        *,
        send_buffer_bytes: int,
        on_excess: Callable[[], None],
    ) -> None:
        """`on_excess` is called when a connection was admitted beyond the broker's limit."""
        self.listener = listener
        self.processors: list[Processor] = []
        self._sock = sock
        self._send_buffer_bytes = send_buffer_bytes
        self._on_excess = on_excess
        self._next_processor = 0
        self._accepting = False
        self._paused: asyncio.TimerHandle | None = None

    @property
    def host(self) -> str:
        host: str = self._sock.getsockname()[0]
        return "0.0.0.0" if host == "::" else host

    @property
    def port(self) -> int:
        port: int = self._sock.getsockname()[1]
        return port

    def start(self) -> None:
        if not self._accepting and self._sock.fileno() >= 0:
            self._accepting = True
            asyncio.get_running_loop().add_reader(self._sock.fileno(), self._on_connections)

    def stop(self) -> None:
        """Stop listening; connections that were accepted stay."""
        if self._sock.fileno() < 0:
            return
        if self._paused is not None:
            self._paused.cancel()
        self._stop_accepting()
        self._sock.close()

    def _stop_accepting(self) -> None:
        if self._accepting:
            self._accepting = False
            asyncio.get_running_loop().remove_reader(self._sock.fileno())

    def _on_connections(self) -> None:
        quotas, name = self.listener.quotas, self.listener.name
        for _ in range(ACCEPTS_PER_TURN):
            if not quotas.has_slot(name):
                self._wait_for_slot()
                return
            try:
                connection, peer = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_RESOURCES:
                    raise
                self._pause(error)
                return
            self._admit(connection, peer[0].removeprefix(IPV4_MAPPED))

    def _admit(self, connection: socket.socket, address: str) -> None:
        quotas = self.listener.quotas
        if not quotas.admits(address):
            self.listener.counters.refused += 1
            logger.info(
                "Rejected connection from %s, address already has the configured maximum of"
                " %d connections.",
                address,
                quotas.limit_of_address(address),
            )
            connection.close()
            return
        try:
            self._configure(connection)
        except OSError as error:
            logger.debug("A connection was gone before it was set up: %s", error)
            connection.close()
            return
        self.listener.counters.accepted += 1
        quotas.add(self.listener.name, address)
        self._take_processor().accept(connection, address)
        if quotas.excess:
            self._on_excess()

    def _configure(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._send_buffer_bytes > 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)

    def _take_processor(self) -> Processor:
        processor = self.processors[self._next_processor % len(self.processors)]
        self._next_processor += 1
        return processor

    def _wait_for_slot(self) -> None:
        """Newcomers stay in the backlog until a connection ends or a limit is raised."""
        self.listener.counters.waited += 1
        self._stop_accepting()
        self.listener.quotas.when_slot(self.start)

    def _pause(self, error: OSError) -> None:
        """Out of descriptors: stop asking for a while instead of spinning."""
        logger.error("Connections are not accepted for a moment: %s", error)
        self._stop_accepting()
        loop = asyncio.get_running_loop()
        self._paused = loop.call_later(PAUSE_WHEN_OUT_OF_DESCRIPTORS_SECONDS, self.start)
