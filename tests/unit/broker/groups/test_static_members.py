"""Static members: they return to their place, and only one of them at a time."""

from pathlib import Path

import pytest

from broker.groups.states import PREPARING_REBALANCE, STABLE
from network.protocol import ErrorCode
from tests.support.groups import REBALANCE_MS, SESSION_MS, TestCoordinator


@pytest.fixture
def groups(tmp_path: Path) -> TestCoordinator:
    coordinator = TestCoordinator(tmp_path)
    coordinator.lead()
    return coordinator


@pytest.fixture
def pair(groups: TestCoordinator) -> tuple[str, str]:
    """Two static members of a stable group, the first of which leads."""
    first, second = groups.join(instance="one"), groups.join(instance="two")
    groups.settle()
    groups.stabilize()
    return first[0].member_id, second[0].member_id


def test_member_id_tells_the_instance(pair: tuple[str, str]) -> None:
    assert pair[0].startswith("one-")


def test_restarted_member_takes_its_place_without_a_rebalance(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    answer = groups.join(instance="two")
    groups.settle()
    (result,) = answer
    assert (result.error, result.generation, result.members) == (ErrorCode.NONE, 1, ())
    assert result.member_id not in pair
    assert result.leader_id == pair[0]
    assert groups.group().state is STABLE
    assigned = groups.sync(result.member_id, 1, instance="two")
    assert assigned[0].assignment == f"part of {pair[1]}".encode()


def test_restarted_leader_is_not_told_that_it_leads(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    answer = groups.join(instance="one")
    groups.settle()
    assert answer[0].leader_id == pair[0] != answer[0].member_id
    assert groups.group().leader_id == answer[0].member_id


def test_replaced_member_is_fenced(groups: TestCoordinator, pair: tuple[str, str]) -> None:
    groups.join(instance="two")
    old = pair[1]
    assert groups.heartbeat(old, 1, instance="two") == ErrorCode.FENCED_INSTANCE_ID
    assert groups.sync(old, 1, instance="two")[0].error == ErrorCode.FENCED_INSTANCE_ID
    assert groups.join(old, instance="two")[0].error == ErrorCode.FENCED_INSTANCE_ID
    assert groups.leave((old, "two")).members == [ErrorCode.FENCED_INSTANCE_ID]
    refused = groups.commit({("t", 0): 1}, member_id=old, generation=1, instance="two")
    assert refused == [{("t", 0): ErrorCode.FENCED_INSTANCE_ID}]
    assert groups.heartbeat(old, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_replaced_member_that_waits_is_fenced_at_once(groups: TestCoordinator) -> None:
    waiting = groups.join(instance="one")
    answer = groups.join(instance="one")
    groups.settle()
    assert waiting[0].error == ErrorCode.FENCED_INSTANCE_ID
    assert (answer[0].error, answer[0].generation) == (ErrorCode.NONE, 1)
    assert len(groups.group().members) == 1


def test_return_while_the_leader_assigns_begins_a_rebalance(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    groups.join(pair[0], instance="one")
    groups.join(pair[1], instance="two")
    groups.settle()
    waiting = groups.sync(pair[1], 2, instance="two")
    groups.join(instance="two")
    groups.settle()
    assert waiting[0].error == ErrorCode.FENCED_INSTANCE_ID
    assert groups.group().state is PREPARING_REBALANCE


def test_static_member_that_misses_a_rebalance_stays_until_its_session_ends(
    groups: TestCoordinator, tmp_path: Path
) -> None:
    first = groups.join(instance="one")
    groups.join(instance="two", session_ms=10 * REBALANCE_MS)
    groups.settle()
    groups.stabilize()
    answer = groups.join(first[0].member_id, instance="one")
    groups.advance(REBALANCE_MS / 1000 + 1)
    assert answer[0].generation == 2
    assert len(answer[0].members) == 2


def test_static_leader_that_misses_a_rebalance_is_followed_by_another(
    groups: TestCoordinator,
) -> None:
    groups.join(instance="one", session_ms=10 * REBALANCE_MS)
    second = groups.join(instance="two")
    groups.settle()
    groups.stabilize()
    answer = groups.join(second[0].member_id, instance="two", protocols={"range": b"new"})
    groups.advance(REBALANCE_MS / 1000 + 1)
    assert answer[0].leader_id == second[0].member_id
    assert len(answer[0].members) == 2


def test_group_of_which_nobody_returns_waits_for_the_sessions_to_end(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    groups.leave((pair[1], None))
    assert groups.group().state is PREPARING_REBALANCE
    groups.advance(SESSION_MS / 1000 + 1)
    assert groups.group().members == {}


def test_administrator_removes_a_member_by_its_instance(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    left = groups.leave(("", "two"), ("", "unknown"))
    assert left.members == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert set(groups.group().static_members) == {"one"}


def test_known_id_with_an_unknown_instance_is_refused(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    assert groups.join(pair[0], instance="three")[0].error == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_survive_a_restart_of_the_broker(
    groups: TestCoordinator, pair: tuple[str, str]
) -> None:
    groups.restart()
    assert groups.heartbeat(pair[0], 1, instance="one") == ErrorCode.NONE
    answer = groups.join(instance="two")
    groups.settle()
    assert (answer[0].generation, groups.group().state) == (1, STABLE)
    assert groups.heartbeat(pair[1], 1, instance="two") == ErrorCode.FENCED_INSTANCE_ID
