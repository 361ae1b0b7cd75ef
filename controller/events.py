"""What can happen to a controller. Watches, sessions, brokers' answers and callers only put one of
these on its queue; the controller's one task does the rest.

Events without a caller to answer are plain values: two that are equal need handling only once.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.cluster import ReplicaAssignment, TopicPartition
from controller.elections import ElectionResults, Strategy
from network.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from network.protocol.messages.stop_replica import StopReplicaResponse
from network.protocol.messages.update_metadata import UpdateMetadataResponse

if TYPE_CHECKING:
    from controller.reassignment import Verdicts


@dataclass(frozen=True, slots=True)
class Startup:
    """The broker is registered; find or become the controller."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """Whatever this broker was, it is no longer the controller, nor registered."""


@dataclass(frozen=True, slots=True)
class SessionEstablished:
    """Register the broker again and take part in the election."""


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """/controller came, went or changed hands."""


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A broker came, went or came back."""


@dataclass(frozen=True, slots=True)
class BrokerModified:
    """A broker says something else of itself."""

    broker: int


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """A topic came or went."""


@dataclass(frozen=True, slots=True)
class PartitionsModified:
    """A topic's assignment has changed."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletionsChanged:
    """Somebody wants topics deleted."""


@dataclass(frozen=True, slots=True)
class IsrChangesNotified:
    """Leaders have changed their in-sync replicas."""


@dataclass(frozen=True, slots=True)
class LogDirEventsNotified:
    """Brokers have lost log directories."""


@dataclass(frozen=True, slots=True)
class PreferredElectionRequested:
    """/admin/preferred_replica_election came."""


@dataclass(frozen=True, slots=True)
class ReassignmentRequestedByZnode:
    """/admin/reassign_partitions came."""


@dataclass(frozen=True, slots=True)
class MovingPartitionChanged:
    """The state of a partition that is moved to other brokers has changed."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class UncleanElectionSet:
    """Whether records may be lost rather than leaders, in topics that do not say so themselves."""

    allowed: bool


@dataclass(frozen=True, slots=True)
class UncleanElectionEnabledIn:
    """A topic may lose records rather than leaders from now on."""

    topic: str


@dataclass(frozen=True, slots=True)
class LeaderBalanceDue:
    """Look whether too many partitions are not led by their preferred replica."""


@dataclass(frozen=True, slots=True, eq=False)
class LeaderAndIsrAnswered:
    broker: int
    response: LeaderAndIsrResponse


@dataclass(frozen=True, slots=True, eq=False)
class UpdateMetadataAnswered:
    broker: int
    response: UpdateMetadataResponse


@dataclass(frozen=True, slots=True, eq=False)
class StopReplicaAnswered:
    """An answer to the request to stop replicas and delete their logs."""

    broker: int
    response: StopReplicaResponse


@dataclass(frozen=True, slots=True, eq=False)
class ControlledShutdownRequested:
    """A broker wants to leave; answered with the partitions that it still leads."""

    broker: int
    broker_epoch: int
    answer: asyncio.Future[set[TopicPartition]] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class ElectionRequested:
    """Somebody wants leaders elected, for some partitions or for all; answered with the results."""

    partitions: frozenset[TopicPartition] | None
    strategy: Strategy
    answer: asyncio.Future[ElectionResults] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentRequested:
    """Somebody wants partitions moved, or their moves ended (None); answered for each of them."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    answer: "asyncio.Future[Verdicts]" = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentsAsked:
    """Somebody wants to know which partitions are being moved, of some or of all."""

    partitions: frozenset[TopicPartition] | None
    answer: asyncio.Future[dict[TopicPartition, ReplicaAssignment]] = field(repr=False)


Asking = (
    ControlledShutdownRequested | ElectionRequested | ReassignmentRequested | ReassignmentsAsked
)

Event = (
    Startup
    | SessionExpired
    | SessionEstablished
    | ControllerChanged
    | BrokersChanged
    | BrokerModified
    | TopicsChanged
    | PartitionsModified
    | TopicDeletionsChanged
    | IsrChangesNotified
    | LogDirEventsNotified
    | PreferredElectionRequested
    | ReassignmentRequestedByZnode
    | MovingPartitionChanged
    | UncleanElectionSet
    | UncleanElectionEnabledIn
    | LeaderBalanceDue
    | LeaderAndIsrAnswered
    | UpdateMetadataAnswered
    | StopReplicaAnswered
    | Asking
)
