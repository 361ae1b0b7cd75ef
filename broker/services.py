"""What handlers work with: the parts of a running broker, and nothing of how they were built."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.fetch_sessions import FetchSessions
from broker.log_flusher import LogFlusher
from broker.metadata_cache import MetadataCache
from broker.replica_manager import ReplicaManager
from broker.settings import Settings
from broker.timing_wheel import TimingWheel
from controller.cluster import BrokerInfo
from network.protocol import ErrorCode

if TYPE_CHECKING:
    from broker.configs.admin import ConfigAdmin
    from broker.groups.coordinator import GroupCoordinator
    from broker.groups.zookeeper_offsets import ZooKeeperOffsets
    from broker.log_dirs import LogDirs
    from broker.topic_admin import TopicAdmin
    from broker.topic_configs import TopicConfigs
    from broker.transactions.producer_ids import ProducerIds
    from controller.controller import Controller


UNKNOWN_BROKER_EPOCH = -1


@dataclass(slots=True)
class Services:
    """The parts of a broker."""

    settings: Settings
    broker_id: int
    broker_epoch: int
    cluster_id: str
    metadata: MetadataCache
    replicas: ReplicaManager
    flusher: LogFlusher
    topics: "TopicAdmin"
    topic_configs: "TopicConfigs"
    configs: "ConfigAdmin"
    timers: TimingWheel
    fetch_sessions: FetchSessions
    producer_ids: "ProducerIds"
    groups: "GroupCoordinator"
    old_offsets: "ZooKeeperOffsets"
    log_dirs: "LogDirs"
    # Made after all the others, which it gives orders to; requests come when it is there.
    controller: "Controller" = field(init=False)

    def check_controller_request(self, broker_epoch: int, controller_epoch: int) -> ErrorCode:
        """Refuse what was meant for an earlier life of this broker, or comes from a deposed
        controller; remember the newest controller epoch."""
        if UNKNOWN_BROKER_EPOCH < broker_epoch < self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.replicas.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.replicas.controller_epoch = controller_epoch
        return ErrorCode.NONE

    def registered_anew(self, info: BrokerInfo) -> None:
        """The session had expired; from now on requests for the earlier epoch are stale."""
        self.broker_epoch = info.epoch
