"""The server side of the network: planes, listeners, limits, start and stop.

Every listener has an acceptor and processors of its own. Those of the data plane share one request
channel; the control plane, where there is one, has a channel, a processor and a worker to itself,
so that what the controller says never waits behind data. The server is handed endpoints and a
handler; it knows no topics and no settings files.
"""

import asyncio
import logging
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from network.acceptor import Acceptor, listen
from network.connection_quotas import ConnectionLimits, ConnectionQuotas
from network.histogram import Sample
from network.memory_pool import MemoryPool
from network.metrics import ListenerCounters
from network.processor import Listener, Processor
from network.request_channel import Handler, RequestChannel
from network.tls.channel import WrapsSockets

logger = logging.getLogger(__name__)

QUIET_POLL_SECONDS = 0.01
CONTROL_PLANE_CAPACITY = 20


@dataclass(frozen=True, slots=True)
class ListenerEndpoint:
    """Where a listener binds, and how it is secured."""

    name: str
    security_protocol: str
    host: str
    port: int
    tls: WrapsSockets | None = None


@dataclass(frozen=True, slots=True)
class NetworkLimits:
    """The settings that shape the network, by the room's own names."""

    processors_per_listener: int = 3
    handler_workers: int = 8
    queued_requests: int = 500
    queued_request_bytes: int = -1
    max_request_size: int = 100 << 20
    max_idle_seconds: float = 600.0
    send_buffer_bytes: int = 100 << 10
    receive_buffer_bytes: int = 100 << 10
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)


class BindError(OSError):
    """A listener could not be bound; the text names the endpoint and the reason."""


class SocketServer:
    """Binds early, serves late: connections wait in the backlog until `start_processing`."""

    def __init__(
        self,
        endpoints: Sequence[ListenerEndpoint],
        limits: NetworkLimits,
        handler: Handler,
        *,
        control_plane: str | None = None,
        inter_broker: str | None = None,
        patient_apis: Container[int] = frozenset(),
    ) -> None:
        """`control_plane` and `inter_broker` are names of listeners."""
        self._endpoints = list(endpoints)
        self._limits = limits
        self._control_plane = control_plane
        self.quotas = ConnectionQuotas(
            limits.connections, inter_broker if len(endpoints) > 1 else None
        )
        self.request_channel = RequestChannel(
            handler,
            workers=limits.handler_workers,
            capacity=limits.queued_requests,
            patient_apis=patient_apis,
        )
        self.control_channel = (
            RequestChannel(handler, workers=1, capacity=CONTROL_PLANE_CAPACITY)
            if control_plane is not None
            else None
        )
        self.memory_pool = (
            MemoryPool(limits.queued_request_bytes) if limits.queued_request_bytes > 0 else None
        )
        self._acceptors: dict[str, Acceptor] = {}
        self._processor_numbers = count()
        self._processing = False

    @property
    def ports(self) -> dict[str, int]:
        """The real port of each listener, by its name."""
        return {name: acceptor.port for name, acceptor in self._acceptors.items()}

    @property
    def processors(self) -> list[Processor]:
        return [one for acceptor in self._acceptors.values() for one in acceptor.processors]

    @property
    def connection_count(self) -> int:
        return sum(len(processor.channels) for processor in self.processors)

    def counters(self, listener: str) -> ListenerCounters:
        return self._acceptors[listener].listener.counters

    # --- start and stop --------------------------------------------------------------------

    def bind(self) -> None:
        """Take the ports, so that a taken one fails the start before anything else happens."""
        try:
            for endpoint in self._endpoints:
                self._acceptors[endpoint.name] = self._bind_one(endpoint)
        except BaseException:
            self._stop_accepting()
            raise

    def start_processing(self) -> None:
        """Serve what waits in the backlog and what comes; the control plane goes first."""
        self._processing = True
        for channel in self._channels():
            channel.start()
        for acceptor in sorted(self._acceptors.values(), key=self._start_order):
            self._start_listener(acceptor)

    async def stop(self, *, grace_seconds: float = 0.0) -> None:
        """Stop accepting, take no new requests, let what is in flight finish within the grace,
        then close everything."""
        self._processing = False
        self._stop_accepting()
        for processor in self.processors:
            processor.drain()
        await self._wait_until_quiet(grace_seconds)
        for channel in self._channels():
            await channel.stop()
        for processor in self.processors:
            await processor.stop()

    # --- changes while it runs -------------------------------------------------------------

    def update_limits(self, connections: ConnectionLimits) -> None:
        """Other limits from now on; connections beyond the broker's are closed, those that were
        used least recently first."""
        self.quotas.update(connections)
        self._close_excess()

    def resize_handlers(self, workers: int) -> None:
        """`num.io.threads` has changed."""
        self.request_channel.resize(workers)

    async def resize_processors(self, per_listener: int) -> None:
        """`num.network.threads` has changed; a processor takes its connections along."""
        for acceptor in self._acceptors.values():
            if acceptor.listener.name == self._control_plane:
                continue
            self._add_processors(acceptor, per_listener - len(acceptor.processors))
            surplus = acceptor.processors[per_listener:]
            del acceptor.processors[per_listener:]
            for processor in surplus:
                await processor.stop()

    def add_listener(self, endpoint: ListenerEndpoint) -> None:
        """Bind one more listener of the data plane, and serve it. Raises BindError."""
        self._acceptors[endpoint.name] = self._bind_one(endpoint)
        if self._processing:
            self._start_listener(self._acceptors[endpoint.name])

    async def remove_listener(self, name: str) -> None:
        """Close a listener and its connections."""
        acceptor = self._acceptors.pop(name)
        acceptor.stop()
        for processor in acceptor.processors:
            await processor.stop()

    # --- figures ---------------------------------------------------------------------------

    def collect(self) -> Iterator[Sample]:
        """Every figure of the network, in Prometheus' terms."""
        planes = [("data", self.request_channel)]
        if self.control_channel is not None:
            planes.append(("control", self.control_channel))
        for plane, channel in planes:
            labels = (("plane", plane),)
            yield Sample("request_queue_size", "gauge", labels, len(channel))
            yield Sample("request_handlers", "gauge", labels, channel.workers)
            yield Sample("request_handler_idle_ratio", "gauge", labels, channel.idle_ratio())
            busy = channel.metrics.handler_seconds()
            yield Sample("request_handler_busy_seconds_total", "counter", labels, busy)
            yield from channel.metrics.collect(plane)
        if self.memory_pool is not None:
            yield Sample("memory_pool_available_bytes", "gauge", (), self.memory_pool.available)
            used = self.memory_pool.size - self.memory_pool.available
            yield Sample("memory_pool_used_bytes", "gauge", (), used)
        for name, acceptor in self._acceptors.items():
            open_now = self.quotas.of_listener(name)
            yield Sample("connections", "gauge", (("listener", name),), open_now)
            yield from acceptor.listener.counters.collect(name)

    # --- parts -----------------------------------------------------------------------------

    def _channels(self) -> list[RequestChannel]:
        both = (self.control_channel, self.request_channel)
        return [channel for channel in both if channel is not None]

    def _bind_one(self, endpoint: ListenerEndpoint) -> Acceptor:
        limits = self._limits
        try:
            sock = listen(
                endpoint.host, endpoint.port, receive_buffer_bytes=limits.receive_buffer_bytes
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise BindError(f"{endpoint.host}:{endpoint.port}: {reason}") from error
        acceptor = Acceptor(
            sock,
            self._make_listener(endpoint),
            send_buffer_bytes=limits.send_buffer_bytes,
            on_excess=self._close_excess,
        )
        is_control = endpoint.name == self._control_plane
        self._add_processors(acceptor, 1 if is_control else limits.processors_per_listener)
        return acceptor

    def _make_listener(self, endpoint: ListenerEndpoint) -> Listener:
        """The control plane is left out of the memory pool: data must not keep it waiting."""
        is_control = endpoint.name == self._control_plane
        channel = self.control_channel if is_control else self.request_channel
        assert channel is not None
        return Listener(
            name=endpoint.name,
            security_protocol=endpoint.security_protocol,
            tls=endpoint.tls,
            request_channel=channel,
            memory_pool=None if is_control else self.memory_pool,
            quotas=self.quotas,
            counters=ListenerCounters(),
            max_request_size=self._limits.max_request_size,
            max_idle_seconds=self._limits.max_idle_seconds,
        )

    def _add_processors(self, acceptor: Acceptor, number: int) -> None:
        for _ in range(number):
            name = f"network-{acceptor.listener.name}-{next(self._processor_numbers)}"
            processor = Processor(name, acceptor.listener)
            acceptor.processors.append(processor)
            if self._processing:
                processor.start()

    def _start_order(self, acceptor: Acceptor) -> int:
        name = acceptor.listener.name
        if name == self._control_plane:
            return 0
        return 1 if self.quotas.is_protected(name) else 2

    def _start_listener(self, acceptor: Acceptor) -> None:
        for processor in acceptor.processors:
            processor.start()
        acceptor.start()
        logger.info("Awaiting socket connections on %s:%d.", acceptor.host, acceptor.port)

    def _stop_accepting(self) -> None:
        for acceptor in self._acceptors.values():
            acceptor.stop()

    def _close_excess(self) -> None:
        """Make room for a connection between brokers, or after a limit was lowered."""
        for _ in range(self.quotas.excess):
            candidates = [
                channel
                for processor in self.processors
                if not self.quotas.is_protected(processor.listener.name)
                and (channel := processor.least_recently_used()) is not None
            ]
            if not candidates:
                return
            victim = min(candidates, key=lambda channel: channel.last_active)
            logger.info("Closing %s: another connection needs its place", victim)
            self.counters(victim.listener_name).evicted += 1
            victim.close()

    async def _wait_until_quiet(self, grace_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_seconds
        while loop.time() < deadline:
            if all(one.is_quiet for processor in self.processors for one in processor.channels):
                return
            await asyncio.sleep(QUIET_POLL_SECONDS)
