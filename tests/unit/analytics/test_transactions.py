"""Committed and aborted transactions of logs that are being written, found in files alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.logs.partitions import find_partitions
from analytics.transactions import NO_STABLE_LIMIT, transactions_of
from storage.append_info import AppendOrigin
from storage.log import Log
from storage.records.builder import BatchBuilder, ProducerInfo
from storage.records.control import ControlType, EndTxnMarker, encode_end_txn_marker
from tests.unit.analytics.logs import SMALL_SEGMENTS
from tests.unit.analytics.reading import offsets
from tests.unit.analytics.segments import START_MS
from tests.unit.storage.support import ManualClock, open_log


class Transactions:
    """Producers that write to a log in transactions."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._sequences: dict[int, int] = {}

    def write(self, producer: int, count: int) -> list[int]:
        first = self.log.end_offset
        sequence = self._sequences.get(producer, 0)
        info = ProducerInfo(producer, 0, sequence, is_transactional=True)
        builder = BatchBuilder(base_offset=0, producer=info)
        for number in range(count):
            builder.append(START_MS + number, b"k", bytes(100))
        self._sequences[producer] = sequence + count
        self.log.append_as_leader(builder.build(), 0)
        return list(range(first, first + count))

    def end(self, producer: int, control_type: ControlType) -> None:
        info = ProducerInfo(producer, 0, -1, is_transactional=True)
        builder = BatchBuilder(base_offset=0, producer=info, is_control=True)
        builder.append(START_MS, *encode_end_txn_marker(EndTxnMarker(control_type, 0)))
        self.log.append_as_leader(builder.build(), 0, AppendOrigin.COORDINATOR)


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
