"""The nouns of a cluster: brokers, partitions, who holds their replicas and who leads them.

Plain immutable values that the controller, its store and the broker share. Knows neither ZooKeeper
nor the wire.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
INITIAL_LEADER_EPOCH: Final = 0
UNKNOWN_BROKER_EPOCH: Final = -1

SECURITY_PROTOCOL_IDS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Replica(NamedTuple):
    """One broker's copy of a partition."""

    partition: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker is reached through one of its listeners."""

    listener_name: str
    security_protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker as it registers; ``epoch`` tells one registration of it from the next."""

    id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    jmx_port: int = -1
    epoch: int = UNKNOWN_BROKER_EPOCH

    def endpoint(self, listener_name: str) -> Endpoint | None:
        return next((e for e in self.endpoints if e.listener_name == listener_name), None)

    def with_epoch(self, epoch: int) -> Self:
        return replace(self, epoch=epoch)


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The brokers of a partition; while it is moved, also those that come and those that go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the move."""
        return _without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the move."""
        return _without(self.replicas, self.removing)

    def reassigned_to(self, target: Iterable[int]) -> Self:
        wanted = tuple(target)
        everyone = tuple(dict.fromkeys((*wanted, *self.origin)))
        return replace(
            self,
            replicas=everyone,
            adding=_without(everyone, self.origin),
            removing=_without(everyone, wanted),
        )

    def without(self, broker: int) -> Self:
        gone = (broker,)
        return replace(
            self,
            replicas=_without(self.replicas, gone),
            adding=_without(self.adding, gone),
            removing=_without(self.removing, gone),
        )


def _without(brokers: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker not in others)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Who leads a partition and who is in sync, decided by whom; ``version`` is its znode's."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = INITIAL_LEADER_EPOCH
    controller_epoch: int = 0
    version: int = 0

    def led_by(self, leader: int, isr: tuple[int, ...] | None = None) -> Self:
        """The next leader epoch."""
        return replace(
            self,
            leader=leader,
            isr=self.isr if isr is None else isr,
            leader_epoch=self.leader_epoch + 1,
        )
