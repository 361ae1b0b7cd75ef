"""Assignments, heartbeats and leaving: who is told what in which state."""

from pathlib import Path

import pytest

from broker.groups.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from network.protocol import ErrorCode
from tests.support.groups import SESSION_MS, TestCoordinator


@pytest.fixture
def groups(tmp_path: Path) -> TestCoordinator:
    coordinator = TestCoordinator(tmp_path)
    coordinator.lead()
    return coordinator


@pytest.fixture
def pair(groups: TestCoordinator) -> tuple[str, str]:
    """Leader and follower of generation 1, which is not assigned yet."""
    leader, follower = groups.join(), groups.join()
    groups.settle()
    return leader[0].member_id, follower[0].member_id


def test_everybody_gets_what_the_leader_assigned(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    waiting = groups.sync(follower, 1)
    groups.settle()
    assert waiting == []
    own = groups.sync(leader, 1, {leader: b"L", follower: b"F"})
    groups.settle()
    assert (own[0].assignment, waiting[0].assignment) == (b"L", b"F")
    assert (own[0].protocol_type, own[0].protocol) == ("consumer", "range")
    assert groups.group().state is STABLE
    assert groups.sync(follower, 1)[0].assignment == b"F"  # its answer was lost


def test_member_that_the_leader_left_out_is_assigned_nothing(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    groups.sync(leader, 1, {leader: b"L", "stranger": b"S"})
    assert groups.sync(follower, 1)[0] == (ErrorCode.NONE, "consumer", "range", b"")


def test_sync_names_the_errors(groups: TestCoordinator, pair: tuple[str, str]) -> None:
    leader, _ = pair
    assert groups.sync(leader, 1, group="other")[0].error == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.sync("stranger", 1)[0].error == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.sync(leader, 0)[0].error == ErrorCode.ILLEGAL_GENERATION
    wrong_type = groups.sync(leader, 1, protocol_type="connect", protocol="range")
    assert wrong_type[0].error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    wrong_name = groups.sync(leader, 1, protocol_type="consumer", protocol="other")
    assert wrong_name[0].error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    groups.join()
    assert groups.sync(leader, 1)[0].error == ErrorCode.REBALANCE_IN_PROGRESS


def test_new_member_sends_those_back_who_wait_for_an_assignment(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    _, follower = pair
    waiting = groups.sync(follower, 1)
    groups.join()
    groups.settle()
    assert waiting[0].error == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.group().state is PREPARING_REBALANCE


def test_heartbeat_tells_of_the_state(groups: TestCoordinator, pair: tuple[str, str]) -> None:
    leader, _ = pair
    assert groups.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    groups.stabilize()
    assert groups.heartbeat(leader, 1) == ErrorCode.NONE
    assert groups.heartbeat(leader, 2) == ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat("stranger", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(leader, 1, group="other") == ErrorCode.UNKNOWN_MEMBER_ID
    groups.join()
    assert groups.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_a_member_and_silence_removes_it(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    groups.stabilize()
    for _ in range(5):
        groups.advance(SESSION_MS / 1000 * 0.9)
        assert groups.heartbeat(leader, 1) == ErrorCode.NONE
        assert groups.heartbeat(follower, 1) == ErrorCode.NONE
    groups.advance(SESSION_MS / 1000 * 0.9)
    groups.heartbeat(leader, 1)
    groups.advance(SESSION_MS / 1000 * 0.2)
    assert set(groups.group().members) == {leader}
    assert groups.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_keeps_a_member_of_a_stable_group(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    groups.stabilize()
    for _ in range(3):
        groups.advance(SESSION_MS / 1000 * 0.9)
        groups.heartbeat(pair[0], 1)
        assert groups.sync(pair[1], 1)[0].error == ErrorCode.NONE


def test_who_waits_for_a_rebalance_needs_no_heartbeat(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    waiting = groups.sync(follower, 1)
    groups.advance(SESSION_MS / 1000 - 1)
    groups.heartbeat(leader, 1)
    groups.advance(2)  # the leader's session ends, the follower's would have too
    assert waiting[0].error == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(groups.group().members) == {follower}


def test_last_member_leaves_an_empty_group_behind(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    groups.stabilize()
    left = groups.leave(*((one, None) for one in pair))
    assert (left.error, left.members) == (ErrorCode.NONE, [ErrorCode.NONE] * 2)
    group = groups.group()
    assert (group.state, group.generation, group.protocol) == (EMPTY, 2, None)
    assert groups.heartbeat(pair[0], 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.join(pair[0])[0].error == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_has_an_error_for_each_member(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    assert groups.leave(("a", None), group="other").members == [ErrorCode.UNKNOWN_MEMBER_ID]
    left = groups.leave(("stranger", None), (pair[1], None))
    assert left.members == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]


def test_member_that_leaves_is_not_left_waiting_for_its_assignment(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    waiting = groups.sync(pair[1], 1)
    groups.leave((pair[1], None))
    groups.settle()
    assert waiting[0].error == ErrorCode.UNKNOWN_MEMBER_ID


def test_assignment_that_cannot_be_written_is_not_given_out(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    waiting = groups.sync(follower, 1)
    too_large = b"x" * 1_100_000
    own = groups.sync(leader, 1, {leader: too_large})
    groups.settle()
    assert own[0] == (ErrorCode.UNKNOWN_SERVER_ERROR, None, None, b"")
    assert waiting[0].error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.group().state is PREPARING_REBALANCE


def test_assignment_waits_for_the_replicas(groups: TestCoordinator, pair: tuple[str, str]) -> None:
    groups.lead(isr=(0, 1))
    own = groups.sync(pair[0], 1, {})
    groups.settle()
    assert (own, groups.group().state) == ([], COMPLETING_REBALANCE)
    groups.replicate()
    groups.settle()
    assert (own[0].error, groups.group().state) == (ErrorCode.NONE, STABLE)


def test_assignment_that_the_replicas_do_not_confirm_begins_a_rebalance(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    groups.lead(isr=(0, 1))
    own = groups.sync(pair[0], 1, {})
    groups.advance(5.1)
    assert own[0].error == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.group().state is PREPARING_REBALANCE


def test_assignment_that_is_written_too_late_is_not_taken_for_the_next_generations(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    groups.lead(isr=(0, 1))
    groups.sync(leader, 1, {leader: b"old", follower: b"old"})
    groups.join()
    groups.rejoin_all()
    groups.settle()
    waiting = groups.sync(follower, 2)
    groups.replicate()
    groups.settle()
    assert (waiting, groups.group().state) == ([], COMPLETING_REBALANCE)
