"""The checks on a group's work notice what they are there for."""

import threading

import pytest

from tests.interop.group_ledger import (
    Commit,
    Ledger,
    Tenure,
    Work,
    check_acknowledged,
    check_commits,
    check_handovers,
)

FIRST = Tenure(assigned_ms=100, begun_ms=110, start=0, end=30, acknowledged=20)
COMMITS = [Commit(10, 120), Commit(20, 130), Commit(40, 230)]


def second(start: int, assigned_ms: int = 200, end: int = 40) -> Tenure:
    return Tenure(assigned_ms, assigned_ms + 10, start, end, start)


def test_owners_that_begin_at_the_last_commit_are_right() -> None:
    check_commits(COMMITS, 40)
    check_handovers([second(20), FIRST], COMMITS)
    check_acknowledged([(0, 10), (20, 40), (10, 20)], COMMITS)


@pytest.mark.parametrize("start", [0, 10, 15, 25, 30])
def test_an_owner_that_begins_elsewhere_is_noticed(start: int) -> None:
    with pytest.raises(AssertionError, match="begins at none of"):
        check_handovers([FIRST, second(start)], COMMITS)


def test_a_commit_in_the_same_millisecond_as_the_assignment_counts_either_way() -> None:
    for start in (10, 20):
        check_handovers([FIRST, second(start, assigned_ms=130)], COMMITS)


def test_a_commit_of_records_that_nobody_processed_is_noticed() -> None:
    commits = [Commit(35, 120)]
    with pytest.raises(AssertionError, match="was never processed"):
        check_handovers([FIRST, second(35)], commits)
    with pytest.raises(AssertionError, match="is beyond"):
        check_handovers([FIRST], commits)


def test_commits_that_go_back_or_end_early_are_noticed() -> None:
    with pytest.raises(AssertionError, match="goes back"):
        check_commits([*COMMITS, Commit(39, 240)], 39)
    with pytest.raises(AssertionError, match="41 records"):
        check_commits(COMMITS, 41)


@pytest.mark.parametrize(
    "acknowledged", [[(0, 10), (20, 40)], [(0, 20), (10, 40)], [(0, 30), (30, 40)], [(0, 20)]]
)
def test_acknowledged_ranges_that_are_apart_overlap_or_are_not_written_are_noticed(
    acknowledged: list[tuple[int, int]],
) -> None:
    with pytest.raises(AssertionError):
        check_acknowledged(acknowledged, COMMITS)


def test_range_whose_answer_was_lost_must_be_in_the_log() -> None:
    check_acknowledged([(0, 10), (20, 40)], COMMITS, answers_may_be_lost=True)
    for acknowledged in ([(0, 10), (15, 40)], [(0, 20), (10, 40)]):
        with pytest.raises(AssertionError, match="follows"):
            check_acknowledged(acknowledged, COMMITS, answers_may_be_lost=True)


def test_records_out_of_order_or_of_partitions_that_were_taken_away_are_noticed() -> None:
    work = Work(Ledger(), threading.Event())
    work.assigned([0])
    work.process(0, 7)
    with pytest.raises(AssertionError, match="9 comes where 8 is next"):
        work.process(0, 9)
    work.lost([0])
    with pytest.raises(AssertionError, match="not assigned"):
        work.process(0, 8)
