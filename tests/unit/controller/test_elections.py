"""Who may lead on each occasion."""

import pytest

from controller.cluster import LeaderAndIsr, ReplicaAssignment
from controller.elections import (
    controlled_shutdown_leader,
    offline_leader,
    preferred_leader,
    reassignment_leader,
)

THREE = ReplicaAssignment((1, 2, 3))
STATE = LeaderAndIsr(1, (1, 2, 3), leader_epoch=7, controller_epoch=2, version=9)


def test_first_live_in_sync_replica_follows_a_dead_leader() -> None:
    assert offline_leader(THREE, STATE, {3, 2}, allow_unclean=False) == LeaderAndIsr(
        2, (2, 3), leader_epoch=8, controller_epoch=2, version=9
    )


def test_replica_out_of_sync_leads_only_where_that_is_allowed() -> None:
    state = LeaderAndIsr(1, (1,), leader_epoch=7)
    assert offline_leader(THREE, state, {2, 3}, allow_unclean=False) is None
    unclean = offline_leader(THREE, state, {2, 3}, allow_unclean=True)
    assert unclean == LeaderAndIsr(2, (2,), leader_epoch=8)
    clean = offline_leader(THREE, state, {1, 2, 3}, allow_unclean=True)
    assert clean == LeaderAndIsr(1, (1,), leader_epoch=8)


def test_nobody_leads_when_all_replicas_are_dead() -> None:
    assert offline_leader(THREE, STATE, set(), allow_unclean=True) is None


@pytest.mark.parametrize(("live", "isr", "leads"), [((1, 2), (1, 2), True), ((2,), (1, 2), False),
                                                    ((1, 2), (2,), False)])  # fmt: skip
def test_preferred_replica_leads_if_alive_and_in_sync(
    live: tuple[int, ...], isr: tuple[int, ...], leads: bool
) -> None:
    chosen = preferred_leader(THREE, LeaderAndIsr(2, isr, leader_epoch=1), live)
    assert chosen == (LeaderAndIsr(1, isr, leader_epoch=2) if leads else None)


def test_moved_partition_is_led_by_one_of_its_new_replicas() -> None:
    moving = ReplicaAssignment((4, 5, 1), adding=(4, 5), removing=(1,))
    state = LeaderAndIsr(1, (1, 5))
    assert reassignment_leader(moving, state, {1, 4, 5}) == LeaderAndIsr(5, (1, 5), 1)
    assert reassignment_leader(moving, LeaderAndIsr(1, (1,)), {1, 4, 5}) is None


def test_leaving_broker_hands_over_and_is_in_sync_no_longer() -> None:
    chosen = controlled_shutdown_leader(THREE, STATE, {1, 2, 3}, {1})
    assert chosen == LeaderAndIsr(2, (2, 3), 8, 2, 9)
    assert controlled_shutdown_leader(THREE, LeaderAndIsr(1, (1,)), {1, 2, 3}, {1}) is None


def test_assignment_knows_origin_and_target_of_a_move() -> None:
    moving = ReplicaAssignment((1, 2)).reassigned_to((2, 3))
    assert moving == ReplicaAssignment((2, 3, 1), adding=(3,), removing=(1,))
    assert moving.is_being_reassigned
    assert (moving.origin, moving.target) == ((2, 1), (2, 3))
    assert moving.reassigned_to((4,)) == ReplicaAssignment((4, 2, 1), (4,), (2, 1))
    assert moving.without(1) == ReplicaAssignment((2, 3), adding=(3,))
