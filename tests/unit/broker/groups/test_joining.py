"""Joins: new members, known members, ids handed out first, limits, leaders."""

from pathlib import Path

import pytest

from broker.groups.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from network.protocol import ErrorCode
from tests.support.groups import REBALANCE_MS, SESSION_MS, TestCoordinator, make_settings


@pytest.fixture
def groups(tmp_path: Path) -> TestCoordinator:
    coordinator = TestCoordinator(tmp_path)
    coordinator.lead()
    return coordinator


def test_first_member_leads_the_first_generation(groups: TestCoordinator) -> None:
    answer = groups.join(protocols={"range": b"subscription"})
    assert answer == []
    groups.settle()
    (result,) = answer
    assert (result.error, result.generation, result.protocol) == (ErrorCode.NONE, 1, "range")
    assert result.leader_id == result.member_id
    assert result.member_id.startswith("client-")
    assert [(one.member_id, one.metadata) for one in result.members] == [
        (result.member_id, b"subscription")
    ]
    assert groups.group().state is COMPLETING_REBALANCE


def test_only_the_leader_learns_of_the_others(groups: TestCoordinator) -> None:
    first, second = groups.join(), groups.join()
    groups.settle()
    assert (first[0].generation, second[0].generation) == (1, 1)
    assert first[0].leader_id == second[0].leader_id == first[0].member_id
    assert (len(first[0].members), len(second[0].members)) == (2, 0)


def test_new_group_waits_for_more_members_as_long_as_they_come(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path, make_settings(initial_delay_ms=3000))
    groups.lead()
    answers = [groups.join(rebalance_ms=8000)]
    groups.advance(2.9)
    answers.append(groups.join())
    groups.advance(2.9)  # past the first delay, within the second
    assert answers == [[], []]
    answers.append(groups.join())
    groups.advance(2.1)
    assert answers == [[], [], []]  # a third delay, cut short by the timeout of 8 s
    groups.advance(0.2)
    assert [len(one) for one in answers] == [1, 1, 1]


def test_initial_delay_ends_when_nobody_else_comes(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path, make_settings(initial_delay_ms=3000))
    groups.lead()
    answer = groups.join()
    groups.advance(2.9)
    assert answer == []
    groups.advance(0.2)
    assert answer[0].generation == 1


def test_member_id_is_handed_out_first(groups: TestCoordinator) -> None:
    (refused,) = groups.join(needs_known_id=True)
    assert refused.error == ErrorCode.MEMBER_ID_REQUIRED
    assert groups.group().state is EMPTY
    answer = groups.join(refused.member_id, needs_known_id=True)
    groups.settle()
    assert (answer[0].error, answer[0].member_id) == (ErrorCode.NONE, refused.member_id)


def test_rebalance_waits_for_a_pending_member_until_its_session_ends(
    groups: TestCoordinator,
) -> None:
    member = groups.new_member()
    groups.stabilize()
    groups.join(needs_known_id=True)
    answer = groups.join(member, protocols={"range": b"changed"})
    groups.settle()
    assert answer == []
    groups.advance(SESSION_MS / 1000)
    assert answer[0].generation == 2


def test_pending_member_may_leave(groups: TestCoordinator) -> None:
    member = groups.new_member()
    groups.stabilize()
    (pending,) = groups.join(needs_known_id=True)
    answer = groups.join(member, protocols={"range": b"changed"})
    assert groups.leave((pending.member_id, None)).members == [ErrorCode.NONE]
    groups.settle()
    assert answer[0].generation == 2


@pytest.mark.parametrize("session_ms", [5999, 1_800_001, 0, -1])
def test_session_timeout_must_be_within_limits(groups: TestCoordinator, session_ms: int) -> None:
    assert groups.join(session_ms=session_ms)[0].error == ErrorCode.INVALID_SESSION_TIMEOUT


def test_unknown_member_id_is_refused(groups: TestCoordinator) -> None:
    assert groups.join("stranger")[0].error == ErrorCode.UNKNOWN_MEMBER_ID  # no such group
    groups.new_member()
    assert groups.join("stranger")[0].error == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.join("stranger")[0].member_id == "stranger"


def test_group_id_must_not_be_empty(groups: TestCoordinator) -> None:
    assert groups.join(group="")[0].error == ErrorCode.INVALID_GROUP_ID
    assert groups.sync("m", 1, group="")[0].error == ErrorCode.INVALID_GROUP_ID
    assert groups.heartbeat("m", 1, group="") == ErrorCode.INVALID_GROUP_ID
    assert groups.leave(("m", None), group="").error == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", {"range": b""}), ("consumer", {"other": b""}), ("consumer", {})],
    ids=["type", "no common protocol", "none"],
)
def test_member_must_speak_what_the_group_speaks(
    groups: TestCoordinator, protocol_type: str, protocols: dict[str, bytes]
) -> None:
    groups.new_member()
    answer = groups.join(protocol_type=protocol_type, protocols=protocols)
    assert answer[0].error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", {"range": b""}), ("consumer", {})])
def test_first_member_must_speak_something(
    groups: TestCoordinator, protocol_type: str, protocols: dict[str, bytes]
) -> None:
    answer = groups.join(protocol_type=protocol_type, protocols=protocols)
    assert answer[0].error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_protocol_is_elected_among_those_that_all_know(groups: TestCoordinator) -> None:
    votes = [("a", "b", "c"), ("b", "a"), ("b", "a", "c")]
    answers = [groups.join(protocols=dict.fromkeys(vote, b"")) for vote in votes]
    groups.settle()
    assert {answer[0].protocol for answer in answers} == {"b"}


def test_protocol_that_most_prefer_and_one_does_not_know_is_not_elected(
    groups: TestCoordinator,
) -> None:
    votes = [("b", "a"), ("b", "a"), ("a",)]
    answers = [groups.join(protocols=dict.fromkeys(vote, b"")) for vote in votes]
    groups.settle()
    assert {answer[0].protocol for answer in answers} == {"a"}


def test_member_that_repeats_its_join_is_told_the_same(groups: TestCoordinator) -> None:
    first, second = groups.join(), groups.join()
    groups.settle()
    leader, follower = first[0].member_id, second[0].member_id
    assert groups.join(leader)[0] == first[0]
    assert groups.join(follower)[0] == second[0]
    groups.stabilize()
    assert groups.join(follower)[0] == second[0]
    assert groups.group().state is STABLE


def test_leader_of_a_stable_group_rebalances_it_by_joining(groups: TestCoordinator) -> None:
    first, second = groups.join(), groups.join()
    groups.settle()
    groups.stabilize()
    again = groups.join(first[0].member_id)
    assert (again, groups.group().state) == ([], PREPARING_REBALANCE)
    groups.join(second[0].member_id)
    groups.settle()
    assert again[0].generation == 2


def test_follower_with_a_new_subscription_rebalances_its_group(groups: TestCoordinator) -> None:
    groups.join()
    second = groups.join()
    groups.settle()
    groups.stabilize()
    assert groups.join(second[0].member_id, protocols={"range": b"new"}) == []
    assert groups.group().state is PREPARING_REBALANCE


def test_member_that_does_not_rejoin_in_time_is_out(groups: TestCoordinator) -> None:
    first, second = groups.join(), groups.join()
    groups.settle()
    groups.stabilize()
    again = groups.join(first[0].member_id)
    for _ in range(11):
        groups.advance(REBALANCE_MS / 1000 / 10)
        if second[0].member_id in groups.group().members:
            groups.heartbeat(second[0].member_id, 1)
    assert again[0].generation == 2
    assert set(groups.group().members) == {first[0].member_id}


def test_leader_that_does_not_rejoin_is_followed_by_another(groups: TestCoordinator) -> None:
    leader, other = groups.join(), groups.join()
    groups.settle()
    groups.stabilize()
    again = groups.join(other[0].member_id, protocols={"range": b"new"})
    groups.advance(SESSION_MS / 1000 + 1)
    assert again[0].leader_id == again[0].member_id == other[0].member_id
    assert leader[0].member_id not in groups.group().members


def test_full_group_takes_nobody(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path, make_settings(max_size=2))
    groups.lead()
    answers = [groups.join(), groups.join()]
    (refused,) = groups.join()
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    groups.settle()
    assert [one[0].error for one in answers] == [ErrorCode.NONE] * 2


def test_ids_handed_out_do_not_make_a_group_larger_than_it_may_be(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path, make_settings(max_size=1))
    groups.lead()
    (first,), (second,) = groups.join(needs_known_id=True), groups.join(needs_known_id=True)
    answer = groups.join(first.member_id)
    assert groups.join(second.member_id)[0].error == ErrorCode.GROUP_MAX_SIZE_REACHED
    groups.settle()
    assert answer[0].error == ErrorCode.NONE


def test_loaded_group_that_is_too_large_sheds_who_joins_last(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path)
    groups.lead()
    for _ in range(3):
        groups.join()
    groups.settle()
    groups.stabilize()
    members = list(groups.group().members)
    groups._settings = make_settings(max_size=2)
    groups.restart()
    assert groups.group().state is PREPARING_REBALANCE
    assert groups.join(members[0])[0].error == ErrorCode.GROUP_MAX_SIZE_REACHED
    answers = [groups.join(one) for one in members[1:]]
    groups.settle()
    assert [one[0].error for one in answers] == [ErrorCode.NONE] * 2


def test_new_member_whose_client_gave_up_is_dropped_after_five_minutes(
    groups: TestCoordinator,
) -> None:
    half_an_hour = 1_800_000
    member = groups.new_member(session_ms=half_an_hour, rebalance_ms=half_an_hour)
    groups.stabilize()
    answer = groups.join()
    groups.advance(299)
    assert (answer, len(groups.group().members)) == ([], 2)
    groups.advance(2)
    assert answer[0].error == ErrorCode.UNKNOWN_MEMBER_ID
    assert set(groups.group().members) == {member}
