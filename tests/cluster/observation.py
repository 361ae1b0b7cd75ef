"""What each broker of a cluster says of it, and whether that is what it should be."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from network.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.broker import BrokerProcess
from tests.support.raw_client import RawClient

METADATA_VERSION = 9
LOOK_AGAIN_SECONDS = 0.05


@dataclass(frozen=True)
class PartitionView:
    """A partition as Metadata shows it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True)
class ClusterView:
    """The cluster as one broker shows it."""

    controller: int
    brokers: frozenset[int]
    partitions: dict[tuple[str, int], PartitionView]

    def led_by(self, broker: int) -> list[tuple[str, int]]:
        return [key for key, one in self.partitions.items() if one.leader == broker]


class Unhealthy(AssertionError):
    """The cluster is not (yet) as it should be."""


def view_of(broker: BrokerProcess) -> ClusterView:
    with RawClient(broker.port) as client:
        answer: MetadataResponse = client.ask(MetadataRequest(topics=None), METADATA_VERSION)
    return ClusterView(
        answer.controller_id,
        frozenset(one.node_id for one in answer.brokers),
        {
            (topic.name or "", one.partition_index): PartitionView(
                one.leader_id,
                one.leader_epoch,
                tuple(one.replica_nodes),
                tuple(one.isr_nodes),
                tuple(sorted(one.offline_replicas)),
            )
            for topic in answer.topics
            if not topic.is_internal  # the consumer's group makes one when it likes
            for one in topic.partitions
        },
    )


def healthy_view(
    brokers: Sequence[BrokerProcess], live: Iterable[int], controller: int | None, partitions: int
) -> ClusterView:
    """The view that all live brokers share; raises Unhealthy where something is amiss."""
    living = frozenset(live)
    views = {number: view_of(brokers[number]) for number in living}
    first = next(iter(views.values()))
    for number, view in views.items():
        if view != first:
            raise Unhealthy(f"broker {number} sees another cluster: {_difference(view, first)}")
    if first.brokers != living:
        raise Unhealthy(f"{set(first.brokers)} are shown, {set(living)} are alive")
    if controller not in living or first.controller != controller:
        raise Unhealthy(f"{first.controller} is shown as the controller, {controller} is")
    if len(first.partitions) != partitions:
        raise Unhealthy(f"{len(first.partitions)} partitions are shown of {partitions}")
    for key, one in first.partitions.items():
        alive = [replica for replica in one.replicas if replica in living]
        if alive and one.leader not in alive:
            raise Unhealthy(f"{key} is not led, though {alive} are alive: {one}")
        if set(one.offline) != set(one.replicas) - living:
            raise Unhealthy(f"{key}: not all know yet who of it is alive: {one}")
        if len(one.isr) > 1 and not living.issuperset(one.isr):
            raise Unhealthy(f"{key} counts on the dead: {one}")
    return first


def _difference(one: ClusterView, other: ClusterView) -> str:
    keys = one.partitions.keys() | other.partitions.keys()
    odd = [key for key in keys if one.partitions.get(key) != other.partitions.get(key)][:1]
    seen = [(view.controller, *map(view.partitions.get, odd)) for view in (one, other)]
    return f"{odd}: {seen}"


def wait_until_healthy(
    look: Callable[[], ClusterView], within: float, since: float
) -> tuple[ClusterView, float]:
    """The healthy cluster, and how long after ``since``; fails if that is not ``within`` it."""
    while True:
        try:
            return look(), time.monotonic() - since
        except (Unhealthy, OSError) as problem:
            if time.monotonic() - since > within:
                raise AssertionError(f"not healthy after {within} s: {problem}") from None
        time.sleep(LOOK_AGAIN_SECONDS)
