"""What can happen to a controller. Watches, sessions, brokers' answers and callers only put one of
these on its queue; the controller's one task does the rest.

Events without a caller to answer are plain values: two that are equal need handling only once.
"""

import asyncio
from dataclasses import dataclass, field

from controller.cluster import TopicPartition
from controller.elections import ElectionResults, Strategy
from network.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from network.protocol.messages.stop_replica import StopReplicaResponse
from network.protocol.messages.update_metadata import UpdateMetadataResponse


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
    | LeaderBalanceDue
    | LeaderAndIsrAnswered
    | UpdateMetadataAnswered
    | StopReplicaAnswered
    | ControlledShutdownRequested
    | ElectionRequested
)
