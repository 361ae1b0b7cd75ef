"""The life of a broker: what is started in which order, and stopped in the reverse one.

Every part that has been started puts its stop on one stack; a failure at any point of the start
unwinds what had been started by then.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from broker import handlers
from broker.background import BackgroundTasks
from broker.controller_link import ControllerLink
from broker.dispatch import Dispatcher
from broker.errors import StartupError
from broker.identity import Identity, establish_identity, record_identity
from broker.java import find_java
from broker.log_flusher import LogFlusher
from broker.metadata_cache import MetadataCache
from broker.readiness import wait_until_ready
from broker.replica_manager import ReplicaManager
from broker.services import Services
from broker.settings import SecurityProtocol, Settings
from broker.states import BrokerState
from broker.topic_admin import TopicAdmin
from broker.topic_configs import TopicConfigs
from controller.cluster import BrokerInfo, Endpoint
from controller.controller import Controller
from controller.embedded_zookeeper import EmbeddedZooKeeper, EmbeddedZooKeeperError
from controller.metadata_store import BrokerRegisteredError, MetadataStore
from controller.session_file import SessionFile
from controller.term import ControllerOptions
from controller.zookeeper import ZooKeeperClient, ZooKeeperError
from network.socket_server import BindError, ListenerEndpoint, NetworkLimits, SocketServer
from storage.errors import NoLogDirectoryLeftError, StorageError
from storage.files import Files
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)

SESSION_FILE = ".zookeeper-session"
ZOOKEEPER_SUFFIX = ".zookeeper"
STOP_GRACE_SECONDS = 5.0
DELETED_FILES_CHECK_MS = 1000
EXPECTED_FAILURES = (
    BrokerRegisteredError,
    EmbeddedZooKeeperError,
    StorageError,
    ZooKeeperError,
)


def run(settings: Settings) -> int:
    """Run a broker until SIGINT or SIGTERM; the exit status. Raises StartupError."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    """Start, wait for a signal or a fatal failure, stop; a signal may also end the start."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop_cleanly() -> None:
        end.set()
        loop.remove_signal_handler(signal.SIGINT)  # a second Ctrl-C does not wait

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_cleanly)
    server = BrokerServer(settings, on_fatal=end.set)
    starting = asyncio.create_task(server.start())
    ending = asyncio.create_task(end.wait())
    await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        await ending
    else:
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
    await server.stop()
    return 1 if server.has_failed else 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class BrokerServer:
    """One broker, from start to stop."""

    def __init__(self, settings: Settings, on_fatal: Callable[[], None]) -> None:
        """`on_fatal` is called when a running broker cannot go on and must be stopped."""
        self.state = BrokerState.NOT_RUNNING
        self.has_failed = False
        self._settings = settings
        self._on_fatal = on_fatal
        self._flusher = LogFlusher()
        self._files = Files()
        self._metadata = MetadataCache()
        self._stops = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Bring everything up, in Kafka's order; what fails on the way is told in one line."""
        logger.info("starting")
        self.state = BrokerState.STARTING
        self._warn_of_idle_settings()
        try:
            await self._start_parts()
        except EXPECTED_FAILURES as error:
            await self.stop()
            raise StartupError(str(error)) from error
        except BaseException:
            await self.stop()
            raise
        self.state = BrokerState.RUNNING_AS_BROKER
        logger.info("started")

    async def stop(self) -> None:
        """Take everything down, last come first gone."""
        if self.state in (BrokerState.NOT_RUNNING, BrokerState.BROKER_SHUTTING_DOWN):
            return
        self.state = BrokerState.BROKER_SHUTTING_DOWN
        logger.info("shutting down")
        await self._stops.aclose()
        self.state = BrokerState.NOT_RUNNING
        logger.info("shut down completed")

    async def _start_parts(self) -> None:
        logs = self._open_log_directories()
        zookeeper = await self._launch_zookeeper()
        sockets = self._bind()
        store = await self._connect_zookeeper(logs, zookeeper)
        identity = await establish_identity(
            self._settings, store, logs.live_directories, self._files
        )
        topic_configs = TopicConfigs(self._settings, store)
        await self._load_logs(logs, store, topic_configs)
        link = ControllerLink(identity.broker_id, self._settings.inter_broker_listener)
        info = await self._register(store, sockets, identity)
        record_identity(identity, logs.live_directories, self._files)
        services = Services(
            settings=self._settings,
            broker_id=identity.broker_id,
            broker_epoch=info.epoch,
            cluster_id=identity.cluster_id,
            metadata=self._metadata,
            replicas=ReplicaManager(
                identity.broker_id, logs, self._metadata, topic_configs.log_config
            ),
            flusher=self._flusher,
            topics=TopicAdmin(self._settings, store, self._metadata),
            topic_configs=topic_configs,
        )
        link.serve(services)
        self._dispatcher.serve(services)
        self._stops.push_async_callback(link.close)
        controller = Controller(
            store,
            info,
            link.send,
            options=ControllerOptions(
                unclean_election=self._settings.unclean_leader_election_enable,
                inter_broker_listener=self._settings.inter_broker_listener,
            ),
            on_registered=services.registered_anew,
        )
        await controller.start()
        self._stops.push_async_callback(controller.stop)
        self._start_background(logs)
        sockets.start_processing()
        self._stops.push_async_callback(sockets.stop, grace_seconds=STOP_GRACE_SECONDS)
        await wait_until_ready(self._metadata, services.replicas, identity.broker_id)

    # --- the parts, in the order of their start ----------------------------------------------

    def _open_log_directories(self) -> LogManager:
        loop = asyncio.get_running_loop()

        def directory_failed(path: Path, error: OSError) -> None:  # in whatever thread met it
            loop.call_soon_threadsafe(self._log_directory_failed, path, error)

        try:
            self._logs = LogManager(
                self._settings.log_directories,
                TopicConfigs.default_of(self._settings),
                now_ms,
                self._files,
                threads_per_directory=self._settings.num_recovery_threads_per_data_dir,
                on_directory_failure=directory_failed,
                on_flush_due=self._flusher.flush_due,
                on_roll=self._flusher.rolled,
            )
        except NoLogDirectoryLeftError as error:
            raise StartupError(f"{error}; make it writable, or set log.dirs") from error
        return self._logs

    def _log_directory_failed(self, path: Path, error: OSError) -> None:
        if not self._logs.live_directories and not self.has_failed:
            self.has_failed = True
            logger.critical("No log directory is left after %s failed: %s", path, error)
            self._on_fatal()

    async def _launch_zookeeper(self) -> EmbeddedZooKeeper | None:
        """A ZooKeeper of our own, unless there is another; it starts while we go on."""
        if self._settings.zookeeper_connect:
            return None
        first = self._settings.log_directories[0]
        directory = first.with_name(first.name + ZOOKEEPER_SUFFIX)
        zookeeper = EmbeddedZooKeeper(find_java().java, directory)
        self._stops.push_async_callback(zookeeper.stop)
        await zookeeper.launch()
        return zookeeper

    def _bind(self) -> SocketServer:
        settings = self._settings
        for one in settings.bound_listeners:
            if one.protocol is not SecurityProtocol.PLAINTEXT:
                raise StartupError(f"listeners: {one}: only PLAINTEXT listeners are served so far")
        handlers.register_all()
        self._dispatcher = Dispatcher()
        endpoints = [
            ListenerEndpoint(one.name, one.protocol.name, one.host, one.port)
            for one in settings.bound_listeners
        ]
        limits = NetworkLimits(
            processors_per_listener=settings.num_network_threads,
            handler_workers=settings.num_io_threads,
            queued_requests=settings.queued_max_requests,
            max_request_size=settings.socket_request_max_bytes,
            max_idle_seconds=settings.connections_max_idle_ms / 1000,
            send_buffer_bytes=settings.socket_send_buffer_bytes,
            receive_buffer_bytes=settings.socket_receive_buffer_bytes,
        )
        sockets = SocketServer(endpoints, limits, self._dispatcher)
        try:
            sockets.bind()
        except BindError as error:
            raise StartupError(
                f"listeners: {error}; stop what listens there, or choose another address or port"
            ) from error
        self._stops.push_async_callback(sockets.stop)
        return sockets

    async def _connect_zookeeper(
        self, logs: LogManager, zookeeper: EmbeddedZooKeeper | None
    ) -> MetadataStore:
        settings = self._settings
        connect = settings.zookeeper_connect or ""
        if zookeeper is not None:
            await zookeeper.wait_until_ready()
            connect = zookeeper.connect_string
        logger.info("Connecting to zookeeper on %s", connect)
        client = ZooKeeperClient(
            connect,
            session_timeout_ms=settings.zookeeper_session_timeout_ms,
            connection_timeout_ms=settings.effective_zookeeper_connection_timeout_ms,
            max_in_flight=settings.zookeeper_max_in_flight_requests,
            session_file=SessionFile(logs.live_directories[0] / SESSION_FILE),
        )
        await client.connect()
        self._stops.push_async_callback(client.close)
        store = MetadataStore(client)
        await store.create_top_level_paths()
        return store

    async def _load_logs(
        self, logs: LogManager, store: MetadataStore, topic_configs: TopicConfigs
    ) -> None:
        logger.info("Loading logs.")
        started = time.monotonic()
        await topic_configs.load(await store.topics())
        await asyncio.to_thread(logs.load, topic_configs.all_known())
        # Not before: closing marks the stop as clean, which only loading can find out.
        self._stops.push_async_callback(asyncio.to_thread, logs.close)
        self._stops.push_async_callback(self._flusher.stop)
        elapsed = (time.monotonic() - started) * 1000
        logger.info("Loaded %d logs in %d ms.", len(logs.all_logs()), elapsed)

    async def _register(
        self, store: MetadataStore, sockets: SocketServer, identity: Identity
    ) -> BrokerInfo:
        endpoints = self._advertised_endpoints(sockets)
        info = BrokerInfo(identity.broker_id, endpoints, self._settings.broker_rack)
        return info.with_epoch(await store.register_broker(info))

    def _advertised_endpoints(self, sockets: SocketServer) -> tuple[Endpoint, ...]:
        """What clients are told: a port of 0 is the real one by now, an empty host our name."""
        return tuple(
            Endpoint(
                one.name,
                one.protocol.name,
                one.host or socket.getfqdn(),
                one.port or sockets.ports[one.name],
            )
            for one in self._settings.published_listeners
        )

    def _start_background(self, logs: LogManager) -> None:
        settings = self._settings
        background = BackgroundTasks()
        background.every("log-flusher", settings.log_flush_scheduler_interval_ms, logs.flush_due)
        background.every(
            "recovery-point-checkpoint",
            settings.log_flush_offset_checkpoint_interval_ms,
            logs.checkpoint_recovery_points,
        )
        background.every(
            "log-start-offset-checkpoint",
            settings.log_flush_start_offset_checkpoint_interval_ms,
            logs.checkpoint_start_offsets,
        )
        background.every(
            "high-watermark-checkpoint",
            settings.replica_high_watermark_checkpoint_interval_ms,
            logs.checkpoint_high_watermarks,
        )
        background.every("deleted-files", DELETED_FILES_CHECK_MS, logs.remove_deleted)
        background.every_on_loop(
            "log-retention", settings.log_retention_check_interval_ms, logs.cleanup
        )
        self._stops.push_async_callback(background.stop)

    def _warn_of_idle_settings(self) -> None:
        for name in self._settings.without_effect:
            logger.warning("%s is recognised but has no effect yet", name)
