"""More partitions for a topic: what may be asked for, and where the new ones go.

Pure functions over the present assignment; topic_admin.py reads and writes it.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import count

from broker.failures import ApiError
from controller.assignment import BrokerRack, assign_replicas
from controller.cluster import ReplicaAssignment
from network.protocol import ErrorCode

Existing = Mapping[int, ReplicaAssignment]
Assignments = Sequence[Sequence[int]]


def extended(
    topic: str,
    existing: Existing,
    wanted: int,
    brokers: Sequence[BrokerRack],
    assignments: Assignments | None = None,
) -> dict[int, ReplicaAssignment]:
    """A topic's assignment with new partitions up to the wanted number; raises ApiError.

    Replicas for each of them may be given; else they are placed as for a new topic, from the
    first broker of partition 0 on.
    """
    _check_count(topic, existing, wanted)
    first = existing.get(0)
    if first is None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Partition 0 of '{topic}' is missing.")
    more = wanted - len(existing)
    if assignments is None:
        start = next((n for n, one in enumerate(brokers) if one.id >= first.replicas[0]), 0)
        placed = assign_replicas(
            brokers,
            more,
            len(first.replicas),
            start_index=start,
            first_partition=len(existing),
        )
    else:
        known = {broker.id for broker in brokers}
        _check_assignments(assignments, more, len(existing), len(first.replicas), known)
        placed = dict(zip(count(len(existing)), map(tuple, assignments), strict=False))
    return {**existing, **{number: ReplicaAssignment(to) for number, to in placed.items()}}


def _check_count(topic: str, existing: Existing, wanted: int) -> None:
    if any(one.is_being_reassigned for one in existing.values()):
        raise ApiError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{topic}'.",
        )
    if not existing:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
    if wanted < len(existing):
        problem = f"The topic has {len(existing)} partitions, which is more than {wanted}."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, problem)
    if wanted == len(existing):
        problem = f"Topic already has {len(existing)} partitions."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, problem)


def _check_assignments(
    assignments: Assignments,
    more: int,
    first_partition: int,
    replication_factor: int,
    known: Collection[int],
) -> None:
    unknown = sorted({broker for replicas in assignments for broker in replicas} - set(known))
    problem = None
    if unknown:
        problem = f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
    elif len(assignments) != more:
        problem = f"{more} partitions are to be added, but {len(assignments)} assignments given."
    else:
        for partition, replicas in enumerate(assignments, start=first_partition):
            if not replicas:
                problem = f"Cannot have replication factor of 0 for partition id {partition}."
            elif len(set(replicas)) != len(replicas):
                problem = f"Partition {partition} names the same replica twice: {list(replicas)}."
            elif len(replicas) != replication_factor:
                problem = (
                    f"Inconsistent replication factor between partitions: partition 0 has"
                    f" {replication_factor}, partition {partition} would have {len(replicas)}."
                )
            if problem is not None:
                break
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
