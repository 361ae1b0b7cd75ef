"""Partitions on real logs, for tests that need no server around them."""

import time
from pathlib import Path

from broker.metadata_cache import MetadataCache
from broker.replica_manager import ReplicaManager
from broker.timing_wheel import TimingWheel
from network.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from storage.log_config import LogConfig
from storage.log_manager import LogManager

BROKER_ID = 0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def make_replicas(directory: Path, config: LogConfig | None = None) -> ReplicaManager:
    effective = config or LogConfig()
    logs = LogManager([directory], effective, now_ms)
    logs.load()
    return ReplicaManager(BROKER_ID, logs, MetadataCache(), lambda _topic: effective, TimingWheel())


def decision(
    *,
    partition: int = 0,
    leader: int = BROKER_ID,
    epoch: int = 0,
    isr: tuple[int, ...] = (BROKER_ID,),
    replicas: tuple[int, ...] | None = None,
) -> LeaderAndIsrPartitionState:
    """What a controller decides for a partition."""
    return LeaderAndIsrPartitionState(
        partition_index=partition,
        leader=leader,
        leader_epoch=epoch,
        isr=list(isr),
        replicas=list(replicas or isr),
        is_new=True,
    )
