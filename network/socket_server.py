"""The server side of the network: listeners, their processors, and the one request channel.

It is handed endpoints and a handler; it knows no topics and no settings files.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from network.acceptor import Acceptor, listen
from network.processor import Processor
from network.request_channel import Handler, RequestChannel

logger = logging.getLogger(__name__)

QUIET_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class ListenerEndpoint:
    """Where a listener binds."""

    name: str
    security_protocol: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class NetworkLimits:
    """The settings that shape the network, by the room's own names."""

    processors_per_listener: int = 3
    handler_workers: int = 8
    queued_requests: int = 500
    max_request_size: int = 100 << 20
    max_idle_seconds: float = 600.0
    send_buffer_bytes: int = 100 << 10
    receive_buffer_bytes: int = 100 << 10


class BindError(OSError):
    """A listener could not be bound; the text names the endpoint and the reason."""


class SocketServer:
    """Binds early, serves late: connections wait in the backlog until `start_processing`."""

    def __init__(
        self, endpoints: Sequence[ListenerEndpoint], limits: NetworkLimits, handler: Handler
    ) -> None:
        self._endpoints = endpoints
        self._limits = limits
        self.request_channel = RequestChannel(
            handler, workers=limits.handler_workers, capacity=limits.queued_requests
        )
        self._acceptors: dict[str, Acceptor] = {}
        self.processors: list[Processor] = []

    @property
    def ports(self) -> dict[str, int]:
        """The real port of each listener, by its name."""
        return {name: acceptor.port for name, acceptor in self._acceptors.items()}

    @property
    def connection_count(self) -> int:
        return sum(len(processor.channels) for processor in self.processors)

    def bind(self) -> None:
        """Take the ports, so that a taken one fails the start before anything else happens."""
        try:
            for endpoint in self._endpoints:
                self._acceptors[endpoint.name] = self._bind_one(endpoint)
        except BaseException:
            self._stop_accepting()
            raise

    def start_processing(self) -> None:
        """Serve what waits in the backlog and what comes."""
        self.request_channel.start()
        for processor in self.processors:
            processor.start()
        for endpoint in self._endpoints:
            acceptor = self._acceptors[endpoint.name]
            acceptor.start()
            logger.info(
                "Awaiting socket connections on %s:%d.", endpoint.host or "0.0.0.0", acceptor.port
            )

    async def stop(self, *, grace_seconds: float = 0.0) -> None:
        """Stop accepting, let what is in flight finish within the grace, then close everything."""
        self._stop_accepting()
        await self._wait_until_quiet(grace_seconds)
        await self.request_channel.stop()
        for processor in self.processors:
            await processor.stop()

    def _bind_one(self, endpoint: ListenerEndpoint) -> Acceptor:
        limits = self._limits
        try:
            sock = listen(
                endpoint.host, endpoint.port, receive_buffer_bytes=limits.receive_buffer_bytes
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise BindError(f"{endpoint.host}:{endpoint.port}: {reason}") from error
        processors = [
            Processor(
                f"network-{endpoint.name}-{number}",
                listener_name=endpoint.name,
                security_protocol=endpoint.security_protocol,
                request_channel=self.request_channel,
                max_request_size=limits.max_request_size,
                max_idle_seconds=limits.max_idle_seconds,
            )
            for number in range(limits.processors_per_listener)
        ]
        self.processors.extend(processors)
        return Acceptor(sock, processors, send_buffer_bytes=limits.send_buffer_bytes)

    def _stop_accepting(self) -> None:
        for acceptor in self._acceptors.values():
            acceptor.stop()

    async def _wait_until_quiet(self, grace_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_seconds
        while loop.time() < deadline:
            if all(one.is_quiet for processor in self.processors for one in processor.channels):
                return
            await asyncio.sleep(QUIET_POLL_SECONDS)
