"""Puts a broker together on log directories that are open and a ZooKeeper that is starting.

Apart from server.py because its imports take as long as ZooKeeper's JVM: they happen meanwhile.
Everything that is started here puts its stop on the stack that it is handed.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Sequence

from broker import handlers
from broker.background import BackgroundTasks
from broker.clock import now_ms
from broker.configs.admin import ConfigAdmin
from broker.configs.cleaner_settings import CleanerChanges
from broker.configs.dynamic_settings import Reconfigurable
from broker.configs.listener_changes import ListenerChanges
from broker.configs.log_settings import LogSettings
from broker.configs.network_changes import CertificateChanges, ConnectionLimitChanges
from broker.configs.service import DynamicConfiguration
from broker.configs.thread_counts import ThreadCounts
from broker.controlled_shutdown import ControlledShutdown
from broker.controller_link import ControllerLink
from broker.directory_failures import DirectoryFailures
from broker.dispatch import Dispatcher, patient_apis
from broker.errors import StartupError
from broker.fetch_sessions import FetchSessions
from broker.groups.coordinator import GroupCoordinator
from broker.groups.settings import group_settings
from broker.groups.zookeeper_offsets import ZooKeeperOffsets
from broker.identity import Identity, establish_identity, record_identity
from broker.listeners import endpoints, network_limits, tls_contexts
from broker.load_progress import load_progress
from broker.log_cleaner import LogCleaner, cleaner_settings
from broker.log_dirs import LogDirs
from broker.log_flusher import LogFlusher
from broker.metadata_cache import MetadataCache
from broker.readiness import wait_until_ready
from broker.replica_manager import ReplicaManager
from broker.services import Services
from broker.settings import Settings
from broker.states import BrokerLife, BrokerState
from broker.timing_wheel import TimingWheel
from broker.topic_admin import TopicAdmin
from broker.topic_configs import TopicConfigs
from broker.topic_names import GROUP_METADATA_TOPIC
from broker.transactions.producer_ids import ProducerIds
from controller.cluster import BrokerInfo, Endpoint
from controller.controller import Controller
from controller.embedded_zookeeper import EmbeddedZooKeeper
from controller.metadata_store import BrokerRegisteredError, MetadataStore
from controller.session_file import SessionFile
from controller.term import ControllerOptions
from controller.zookeeper import ZooKeeperClient, ZooKeeperError
from network.socket_server import BindError, SocketServer
from network.tls.context import TlsContext
from storage.files import Files
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)

SESSION_FILE = ".zookeeper-session"
STOP_GRACE_SECONDS = 5.0
DELETED_FILES_CHECK_MS = 1000
PRODUCER_EXPIRATION_CHECK_MS = 600_000


class Assembly:
    """The parts of one broker, started in Kafka's order."""

    def __init__(
        self,
        settings: Settings,
        logs: LogManager,
        flusher: LogFlusher,
        stops: contextlib.AsyncExitStack,
        life: BrokerLife,
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._flusher = flusher
        self._stops = stops
        self._life = life
        self._files = Files()
        self._metadata = MetadataCache()
        self._dispatcher = Dispatcher()
        self._tls: dict[str, TlsContext] = {}
        self._hand_over: ControlledShutdown | None = None
        self._directory_failures: DirectoryFailures | None = None

    async def start(self, zookeeper: EmbeddedZooKeeper | None) -> None:
        """Raises StartupError for whatever an operator can mend."""
        try:
            await self._start_parts(zookeeper)
        except (BrokerRegisteredError, ZooKeeperError) as error:
            raise StartupError(str(error)) from error

    async def _start_parts(self, zookeeper: EmbeddedZooKeeper | None) -> None:
        store = await self._connect_zookeeper(zookeeper)
        identity = await establish_identity(
            self._settings, store, self._logs.live_directories, self._files
        )
        configuration = DynamicConfiguration(self._settings, store, identity.broker_id)
        await configuration.load()
        topic_configs = TopicConfigs(self._settings, store)
        await self._load_logs(store, topic_configs)
        sockets = self._bind()
        info = await self._register(store, sockets, identity)
        producer_ids = ProducerIds(identity.broker_id, store)
        await producer_ids.claim_first_block()
        record_identity(identity, self._logs.live_directories, self._files)
        timers = TimingWheel()
        replicas = ReplicaManager(
            identity.broker_id, self._logs, self._metadata, topic_configs.log_config, timers
        )
        services = Services(
            settings=self._settings,
            broker_id=identity.broker_id,
            broker_epoch=info.epoch,
            cluster_id=identity.cluster_id,
            metadata=self._metadata,
            replicas=replicas,
            flusher=self._flusher,
            topics=TopicAdmin(self._settings, store, self._metadata, timers),
            topic_configs=topic_configs,
            configs=ConfigAdmin(identity.broker_id, configuration.settings, store, self._metadata),
            timers=timers,
            fetch_sessions=FetchSessions(self._settings.max_incremental_fetch_session_cache_slots),
            producer_ids=producer_ids,
            groups=await self._coordinate_groups(store, replicas, timers),
            old_offsets=ZooKeeperOffsets(store, self._settings.offset_metadata_max_bytes),
            log_dirs=LogDirs(self._logs, replicas),
        )
        services.log_dirs.resume()
        self._stops.push_async_callback(services.log_dirs.stop)
        self._dispatcher.serve(services)
        self._directory_failures = DirectoryFailures(info.id, services.replicas, store)
        await self._start_controller(store, info, services)
        self._hand_over = self._controlled_shutdown(store, services)
        cleaner = self._start_background(services.groups)
        self._stops.push_async_callback(sockets.stop, grace_seconds=STOP_GRACE_SECONDS)
        await self._follow_configuration(configuration, services, cleaner, sockets, store)
        sockets.start_processing()
        self._stops.push_async_callback(services.groups.stop)
        await wait_until_ready(
            self._metadata, services.replicas, identity.broker_id, await self._own_topics(store)
        )

    async def _own_topics(self, store: MetadataStore) -> set[str]:
        """The topics of the logs here, but for those that are or will be deleted."""
        topics = await store.topics() - await store.topics_to_delete()
        return topics & {log.topic for log in self._logs.all_logs()}

    async def hand_over_leadership(self) -> None:
        """Before a stop, while everything still runs."""
        if self._hand_over is not None:
            await self._hand_over.run()

    def log_directory_failed(self) -> None:
        """One of several; what it held is lost for now."""
        if self._directory_failures is not None:
            self._directory_failures.announce()

    def _bind(self) -> SocketServer:
        settings = self._settings
        handlers.register_all()
        self._tls = tls_contexts(settings)
        has_control_plane = settings.control_plane_listener_name is not None
        control = settings.control_plane_listener if has_control_plane else None
        try:
            sockets = SocketServer(
                endpoints(settings, self._tls),
                network_limits(settings),
                self._dispatcher,
                control_plane=control,
                inter_broker=settings.inter_broker_listener,
                patient_apis=patient_apis(),
            )
        except OSError as error:
            raise StartupError(f"max.connections.per.ip.overrides: {error}") from error
        try:
            sockets.bind()
        except BindError as error:
            raise StartupError(
                f"listeners: {error}; stop what listens there, or choose another address or port"
            ) from error
        self._stops.push_async_callback(sockets.stop)
        return sockets

    async def _connect_zookeeper(self, zookeeper: EmbeddedZooKeeper | None) -> MetadataStore:
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
            session_file=SessionFile(self._logs.live_directories[0] / SESSION_FILE),
        )
        await client.connect()
        self._stops.push_async_callback(client.close)
        store = MetadataStore(client)
        await store.create_top_level_paths()
        return store

    async def _load_logs(self, store: MetadataStore, topic_configs: TopicConfigs) -> None:
        logger.info("Loading logs.")
        started = time.monotonic()
        self._logs.default_config = topic_configs.default
        self._logs.set_threads(self._settings.num_recovery_threads_per_data_dir)
        await topic_configs.load(await store.topics())
        if not self._logs.was_stopped_cleanly:
            self._life.enter(BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN)
        with load_progress() as report:
            await asyncio.to_thread(self._logs.load, topic_configs.all_known(), report)
        # Not before: closing marks the stop as clean, which only loading can find out.
        self._stops.push_async_callback(asyncio.to_thread, self._logs.close)
        self._stops.push_async_callback(self._flusher.stop)
        elapsed = (time.monotonic() - started) * 1000
        logger.info("Loaded %d logs in %d ms.", len(self._logs.all_logs()), elapsed)

    async def _register(
        self, store: MetadataStore, sockets: SocketServer, identity: Identity
    ) -> BrokerInfo:
        info = await self._broker_info(store, sockets, identity.broker_id)
        return info.with_epoch(await store.register_broker(info))

    async def _broker_info(
        self, store: MetadataStore, sockets: SocketServer, broker_id: int
    ) -> BrokerInfo:
        endpoints = self._advertised_endpoints(sockets)
        await _check_addresses(store, broker_id, endpoints)
        return BrokerInfo(broker_id, endpoints, self._settings.broker_rack)

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

    async def _start_controller(
        self, store: MetadataStore, info: BrokerInfo, services: Services
    ) -> None:
        settings = self._settings
        link = self._link(services, settings.control_plane_listener, settings.inter_broker_listener)
        controller = Controller(
            store,
            info,
            link.send,
            options=ControllerOptions(
                unclean_election=settings.unclean_leader_election_enable,
                inter_broker_listener=settings.inter_broker_listener,
                delete_topics=settings.delete_topic_enable,
                auto_balance=settings.auto_leader_rebalance_enable,
                imbalance_percentage=settings.leader_imbalance_per_broker_percentage,
                balance_check_seconds=settings.leader_imbalance_check_interval_seconds,
            ),
            on_registered=services.registered_anew,
            known_brokers=lambda: self._metadata.brokers,
        )
        services.controller = controller
        self._life.knows_by(lambda: controller.is_active)
        await controller.start()
        self._stops.push_async_callback(controller.stop)

    async def _coordinate_groups(
        self, store: MetadataStore, replicas: ReplicaManager, timers: TimingWheel
    ) -> GroupCoordinator:
        """Which partition a group lives on is settled by how many there were at the start."""
        known = (await store.assignments([GROUP_METADATA_TOPIC])).get(GROUP_METADATA_TOPIC, ())
        return GroupCoordinator(
            group_settings(self._settings),
            len(known) or self._settings.offsets_topic_num_partitions,
            replicas,
            self._flusher,
            timers,
            asyncio.get_running_loop().call_soon,
            now_ms,
        )

    def _controlled_shutdown(self, store: MetadataStore, services: Services) -> ControlledShutdown:
        link = self._link(services, self._settings.inter_broker_listener)
        return ControlledShutdown(services, store, link)

    def _link(self, services: Services, *listener_names: str) -> ControllerLink:
        timeout = self._settings.controller_socket_timeout_ms / 1000
        link = ControllerLink(services.broker_id, listener_names, timeout, self._tls)
        link.serve(services)
        self._stops.push_async_callback(link.close)
        return link

    async def _follow_configuration(
        self,
        configuration: DynamicConfiguration,
        services: Services,
        cleaner: LogCleaner,
        sockets: SocketServer,
        store: MetadataStore,
    ) -> None:
        async def advertise() -> None:
            info = await self._broker_info(store, sockets, services.broker_id)
            await services.controller.update_broker(info)

        certificates = CertificateChanges(self._tls)
        parts: list[Reconfigurable] = [
            ThreadCounts(
                {
                    "num.recovery.threads.per.data.dir": self._logs.set_threads,
                    "num.io.threads": sockets.resize_handlers,
                    "num.network.threads": sockets.resize_processors,
                }
            ),
            ListenerChanges(sockets, self._tls, advertise),
            ConnectionLimitChanges(sockets),
            certificates,
        ]
        configuration.settings.on_reload(certificates.reload_files)
        if self._settings.log_cleaner_enable:
            parts.append(CleanerChanges(cleaner))
        logs = LogSettings(services.topic_configs, self._logs, services.controller)
        await configuration.follow(logs, parts)
        self._stops.push_async_callback(configuration.stop)

    def _start_background(self, groups: GroupCoordinator) -> LogCleaner:
        settings, logs = self._settings, self._logs
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
        cleaner = LogCleaner(logs, cleaner_settings(settings))
        background.every_on_loop(
            "log-retention",
            settings.log_retention_check_interval_ms,
            lambda: logs.cleanup(skipped=cleaner.in_progress),
        )
        background.every_on_loop(
            "producer-expiration", PRODUCER_EXPIRATION_CHECK_MS, logs.remove_expired_producers
        )
        background.every_on_loop(
            "offset-expiration",
            settings.offsets_retention_check_interval_ms,
            groups.remove_expired_offsets,
        )
        self._stops.push_async_callback(background.stop)
        if settings.log_cleaner_enable:
            cleaner.start()
            self._stops.push_async_callback(cleaner.stop)
        return cleaner


async def _check_addresses(
    store: MetadataStore, broker_id: int, endpoints: Sequence[Endpoint]
) -> None:
    """Refuse to advertise what another broker is known by: clients would meet the wrong one."""
    ours = {(one.host, one.port) for one in endpoints}
    for other in (await store.brokers()).values():
        for endpoint in other.endpoints:
            if other.id != broker_id and (endpoint.host, endpoint.port) in ours:
                raise StartupError(
                    f"advertised.listeners: {endpoint.host}:{endpoint.port} is already registered"
                    f" by broker {other.id}; advertise another address"
                )
