"""The controller's single picture of the cluster, and questions about it.

Held in memory by the active controller only; filled from ZooKeeper at its election. Does no I/O and
makes no decision.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from controller.cluster import (
    BrokerInfo,
    LeaderAndIsr,
    Replica,
    ReplicaAssignment,
    TopicPartition,
)


class PartitionState(Enum):
    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(Enum):
    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


@dataclass(slots=True)
class ControllerContext:
    epoch: int = 0
    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[Replica, ReplicaState] = field(default_factory=dict)
    replicas_on_failed_disks: dict[int, set[TopicPartition]] = field(default_factory=dict)
    topics_to_delete: set[str] = field(default_factory=set)
    topics_being_deleted: set[str] = field(default_factory=set)
    topics_not_to_delete_yet: set[str] = field(default_factory=set)
    being_reassigned: set[TopicPartition] = field(default_factory=set)

    # -- brokers -----------------------------------------------------------------------------

    @property
    def live_brokers(self) -> set[int]:
        """Brokers that may lead: registered and not on their way out."""
        return self.brokers.keys() - self.shutting_down

    def is_online(
        self, broker: int, partition: TopicPartition, *, or_shutting_down: bool = False
    ) -> bool:
        """Whether a broker can serve its replica of the partition."""
        return (
            broker in self.brokers
            and (or_shutting_down or broker not in self.shutting_down)
            and partition not in self.replicas_on_failed_disks.get(broker, ())
        )

    # -- partitions and replicas -------------------------------------------------------------

    @property
    def topics(self) -> set[str]:
        return set(self.assignments)

    def partitions(self) -> Iterator[TopicPartition]:
        for topic in self.assignments:
            yield from self.partitions_of(topic)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in self.assignments.get(topic, ())]

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        return self.assignments.get(partition.topic, {}).get(
            partition.partition, ReplicaAssignment(())
        )

    def assign(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        self.assignments.setdefault(partition.topic, {})[partition.partition] = assignment

    def replicas(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        return [
            Replica(partition, broker)
            for partition in partitions
            for broker in self.assignment(partition).replicas
        ]

    def replicas_on(self, brokers: Collection[int]) -> list[Replica]:
        return [one for one in self.replicas(self.partitions()) if one.broker in brokers]

    def online_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        replicas = self.assignment(partition).replicas
        return tuple(broker for broker in replicas if self.is_online(broker, partition))

    def partitions_in(self, *states: PartitionState) -> list[TopicPartition]:
        return [one for one, state in self.partition_states.items() if state in states]

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: Replica) -> ReplicaState:
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def replicas_in(self, topic: str, state: ReplicaState) -> list[Replica]:
        replicas = self.replicas(self.partitions_of(topic))
        return [one for one in replicas if self.replica_state(one) is state]

    def is_to_be_deleted(self, topic: str) -> bool:
        return topic in self.topics_to_delete

    @property
    def offline_partition_count(self) -> int:
        return len(self.partitions_in(PartitionState.OFFLINE))

    def forget_topic(self, topic: str) -> None:
        for partition in self.partitions_of(topic):
            self.leadership.pop(partition, None)
            self.partition_states.pop(partition, None)
            self.being_reassigned.discard(partition)
            for broker in self.assignment(partition).replicas:
                self.replica_states.pop(Replica(partition, broker), None)
        self.assignments.pop(topic, None)
