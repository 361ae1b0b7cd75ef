"""Committed and aborted transactions of logs that are being written, found in files alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analytics.errors import AnalysisError
from analytics.logs.partitions import find_partitions
from analytics.transactions import NO_STABLE_LIMIT, transactions_of
from storage.log import Log
from storage.records.control import ControlType
from tests.unit.analytics.logs import SMALL_SEGMENTS, Transactions
from tests.unit.analytics.reading import offsets
from tests.unit.analytics.segments import START_MS
from tests.unit.storage.support import ManualClock, open_log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    opened = open_log(tmp_path, SMALL_SEGMENTS, clock=ManualClock(START_MS))
    yield opened
    opened.close()


def committed(directory: Path) -> list[int]:
    return offsets(directory, isolationLevel="read_committed")


def test_interleaved_transactions_over_many_segments(tmp_path: Path, log: Log) -> None:
    producers = Transactions(log)
    kept: list[int] = []
    for number in range(60):
        one, other = producers.write(1, 5), producers.write(2, 3)
        producers.end(1, ControlType.ABORT if number % 3 == 0 else ControlType.COMMIT)
        producers.end(2, ControlType.ABORT if number % 4 == 0 else ControlType.COMMIT)
        kept += [*(one if number % 3 else []), *(other if number % 4 else [])]
    assert len(log.segments) > 2
    assert committed(tmp_path) == kept
    (found,) = find_partitions(tmp_path)
    view = transactions_of(found)
    assert view.last_stable_offset == NO_STABLE_LIMIT
    assert len(view.aborted) == 20 + 15


def test_nothing_is_read_from_the_first_open_transaction_on(tmp_path: Path, log: Log) -> None:
    producers = Transactions(log)
    kept = producers.write(1, 5)
    producers.end(1, ControlType.COMMIT)
    opened = producers.write(2, 4)
    for _ in range(60):  # the open one began some segments and snapshots ago
        later = producers.write(1, 5)
        producers.end(1, ControlType.COMMIT)
        opened += later
    assert len(log.segments) > 2
    assert committed(tmp_path) == kept
    producers.end(2, ControlType.COMMIT)
    assert committed(tmp_path) == kept + opened


def test_an_abort_whose_index_entry_is_missing_is_seen_in_the_log(tmp_path: Path, log: Log) -> None:
    producers = Transactions(log)
    kept = producers.write(1, 2)
    producers.write(2, 3)
    producers.end(2, ControlType.ABORT)
    producers.end(1, ControlType.COMMIT)
    (index,) = tmp_path.rglob("*.txnindex")
    index.unlink()
    assert committed(tmp_path) == kept


def test_a_snapshot_behind_the_segments_that_were_found_is_not_gone_by(
    tmp_path: Path, log: Log
) -> None:
    producers = Transactions(log)
    kept = producers.write(1, 2)
    producers.end(1, ControlType.COMMIT)
    producers.write(2, 3)
    (found,) = find_partitions(tmp_path)
    log.roll()
    producers.end(2, ControlType.ABORT)
    log.roll()
    (later,) = find_partitions(tmp_path)
    # A large folder, listed while two segments were added, may show both snapshots and neither.
    view = transactions_of(replace(found, snapshot_offsets=later.snapshot_offsets))
    assert view.readable_end == kept[-1] + 2


def test_an_index_of_aborted_transactions_that_cannot_be_read_is_an_error(
    tmp_path: Path, log: Log
) -> None:
    producers = Transactions(log)
    producers.write(1, 5)
    producers.end(1, ControlType.ABORT)
    kept = producers.write(1, 3)
    producers.end(1, ControlType.COMMIT)
    assert committed(tmp_path) == kept
    (index,) = tmp_path.rglob("*.txnindex")
    data = index.read_bytes()
    index.write_bytes(b"\x7f\x7f" + data[2:])
    with pytest.raises(AnalysisError, match="txnindex"):
        committed(tmp_path)
    index.unlink()
    index.mkdir()
    with pytest.raises(AnalysisError, match="txnindex: cannot be read: Not a regular file"):
        committed(tmp_path)
    index.rmdir()
    index.write_bytes(data)
