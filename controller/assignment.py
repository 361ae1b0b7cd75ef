"""Which brokers hold the replicas of a new topic or of new partitions.

The same placement as Apache Kafka 2.5's: leaders go round the brokers, followers follow with a
shift that grows with every round, and where racks are known each partition covers as many of them
as it can. Pure functions; chance is handed in.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class InvalidAssignmentError(Exception):
    """The brokers there are can't hold the replicas that are asked for."""


class InvalidPartitionsError(InvalidAssignmentError):
    """A topic needs at least one partition."""


class InvalidReplicationFactorError(InvalidAssignmentError):
    """There are fewer brokers than replicas, or no replica is asked for."""


@dataclass(frozen=True, slots=True)
class BrokerRack:
    id: int
    rack: str | None = None


def assign_replicas(
    brokers: Sequence[BrokerRack],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int | None = None,
    first_partition: int = 0,
    chance: random.Random | None = None,
) -> dict[int, tuple[int, ...]]:
    """The replicas of each partition from ``first_partition`` on, the preferred leader first.

    Without a start index the first broker and the first shift are left to chance, so that topics
    do not all begin on the same broker.
    """
    if partitions <= 0:
        raise InvalidPartitionsError("Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise InvalidReplicationFactorError("Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactorError(
            f"Replication factor: {replication_factor} larger than available brokers:"
            f" {len(brokers)}."
        )
    racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    if racks and len(racks) < len(brokers):
        raise InvalidAssignmentError(
            "Not all brokers have rack information for replica rack aware assignment."
        )
    ring = rack_alternated(racks) if racks else [broker.id for broker in brokers]
    dice = chance or random.Random()
    start = dice.randrange(len(ring)) if start_index is None else start_index
    shift = dice.randrange(len(ring)) if start_index is None else start_index
    assignment = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(ring) == 0:
            shift += 1
        first = (partition + start) % len(ring)
        if racks:
            assignment[partition] = _across_racks(ring, racks, first, shift, replication_factor)
        else:
            assignment[partition] = _along_the_ring(ring, first, shift, replication_factor)
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """The brokers in an order in which neighbours are in different racks, as far as can be."""
    waiting = {
        rack: sorted((broker for broker in racks if racks[broker] == rack), reverse=True)
        for rack in sorted(set(racks.values()))
    }
    alternated: list[int] = []
    while len(alternated) < len(racks):
        alternated += [brokers.pop() for brokers in waiting.values() if brokers]
    return alternated


def _along_the_ring(
    ring: Sequence[int], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    followers = (_follower(ring, first, shift, nth) for nth in range(replication_factor - 1))
    return (ring[first], *followers)


def _across_racks(
    ring: Sequence[int],
    racks: Mapping[int, str],
    first: int,
    shift: int,
    replication_factor: int,
) -> tuple[int, ...]:
    """Walk on from the leader, past racks that have a replica while others have none."""
    rack_count = len(set(racks.values()))
    replicas = [ring[first]]
    nth = 0
    while len(replicas) < replication_factor:
        broker = _follower(ring, first, shift * rack_count, nth)
        nth += 1
        racks_used = {racks[replica] for replica in replicas}
        rack_may_serve = racks[broker] not in racks_used or len(racks_used) == rack_count
        if rack_may_serve and broker not in replicas:
            replicas.append(broker)
    return tuple(replicas)


def _follower(ring: Sequence[int], first: int, shift: int, nth: int) -> int:
    distance = 1 + (shift + nth) % (len(ring) - 1)
    return ring[(first + distance) % len(ring)]
