"""The offsets of one group: of two commits, the one that lies later in the log holds."""

import pytest

from broker.groups.offsets import CommittedOffset, GroupOffsets

TP = ("t", 0)
PRODUCER = 7


def committed(offsets: GroupOffsets) -> int:
    return offsets.committed[TP].offset


@pytest.fixture
def offsets() -> GroupOffsets:
    """With a transaction that has written a commit at offset 5 of the log."""
    offsets = GroupOffsets()
    commits = {TP: CommittedOffset(100)}
    offsets.begin_in_transaction(PRODUCER, commits)
    offsets.written_in_transaction(PRODUCER, commits, 5)
    return offsets


def commit(offsets: GroupOffsets, offset: int, at: int) -> None:
    commits = {TP: CommittedOffset(offset)}
    offsets.begin(commits)
    offsets.written(commits, at)


def test_commit_of_a_transaction_counts_from_its_end_on(offsets: GroupOffsets) -> None:
    assert (dict(offsets.committed), offsets.is_unstable(TP)) == ({}, True)
    offsets.end_transaction(PRODUCER, committed=True)
    assert (committed(offsets), offsets.is_unstable(TP)) == (100, False)


def test_commit_of_an_aborted_transaction_never_counts(offsets: GroupOffsets) -> None:
    commit(offsets, 50, at=4)
    offsets.end_transaction(PRODUCER, committed=False)
    assert (committed(offsets), offsets.is_unstable(TP)) == (50, False)


@pytest.mark.parametrize(("at", "holds"), [(4, 100), (6, 50)])
def test_later_commit_holds_though_a_transaction_ends_after_it(
    offsets: GroupOffsets, at: int, holds: int
) -> None:
    commit(offsets, 50, at)
    offsets.end_transaction(PRODUCER, committed=True)
    assert committed(offsets) == holds


def test_commit_that_failed_in_a_transaction_is_forgotten(offsets: GroupOffsets) -> None:
    offsets.failed_in_transaction(PRODUCER, {TP: CommittedOffset(100)})
    assert (list(offsets.open_producers), offsets.is_unstable(TP)) == ([], False)
    offsets.end_transaction(PRODUCER, committed=True)
    assert TP not in offsets.committed


def test_earlier_of_two_commits_under_way_does_not_end_the_later(offsets: GroupOffsets) -> None:
    offsets.end_transaction(PRODUCER, committed=False)
    first, second = {TP: CommittedOffset(1)}, {TP: CommittedOffset(2)}
    offsets.begin(first)
    offsets.begin(second)
    offsets.failed(first)
    assert offsets.is_unstable(TP)
    offsets.written(second, 8)
    assert (committed(offsets), offsets.is_unstable(TP)) == (2, False)
