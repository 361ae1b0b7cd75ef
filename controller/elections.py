"""Who leads a partition next: one pure function per occasion, after Apache Kafka's own rules.

Each takes the partition's present state and who of its replicas can serve, and answers with its
next state, or None where nobody may lead.
"""

from collections.abc import Collection
from enum import Enum

from controller.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition


class ElectionFailedError(Exception):
    """Nobody could be made leader of a partition; the message says why."""


ElectionResults = dict[TopicPartition, LeaderAndIsr | ElectionFailedError]


class Strategy(Enum):
    """The occasions on which a leader is elected."""

    OFFLINE = "the leader is gone; in-sync replicas first, any if the topic allows it"
    UNCLEAN = "the leader is gone; any replica will do"
    PREFERRED = "the first of the assigned replicas should lead"
    REASSIGNMENT = "the replicas have moved to other brokers"
    CONTROLLED_SHUTDOWN = "the leader is about to leave"


def offline_leader(
    assignment: ReplicaAssignment,
    state: LeaderAndIsr,
    live: Collection[int],
    *,
    allow_unclean: bool,
) -> LeaderAndIsr | None:
    """The first live in-sync replica; else, where that is allowed, any live one on its own."""
    for broker in assignment.replicas:
        if broker in live and broker in state.isr:
            return state.led_by(broker, tuple(one for one in state.isr if one in live))
    if allow_unclean:
        for broker in assignment.replicas:
            if broker in live:
                return state.led_by(broker, (broker,))
    return None


def preferred_leader(
    assignment: ReplicaAssignment, state: LeaderAndIsr, live: Collection[int]
) -> LeaderAndIsr | None:
    """The first assigned replica, if it is alive and in sync."""
    for broker in assignment.replicas[:1]:
        if broker in live and broker in state.isr:
            return state.led_by(broker)
    return None


def reassignment_leader(
    assignment: ReplicaAssignment, state: LeaderAndIsr, live: Collection[int]
) -> LeaderAndIsr | None:
    """The first live in-sync replica of those that the partition is moved to."""
    for broker in assignment.target:
        if broker in live and broker in state.isr:
            return state.led_by(broker)
    return None


def controlled_shutdown_leader(
    assignment: ReplicaAssignment,
    state: LeaderAndIsr,
    live_or_leaving: Collection[int],
    leaving: Collection[int],
) -> LeaderAndIsr | None:
    """The first in-sync replica that stays; those that leave are in sync no longer."""
    for broker in assignment.replicas:
        if broker in live_or_leaving and broker in state.isr and broker not in leaving:
            return state.led_by(broker, tuple(one for one in state.isr if one not in leaving))
    return None
