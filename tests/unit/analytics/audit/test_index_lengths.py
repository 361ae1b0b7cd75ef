"""Offset indexes that lost entries at their end, and sound ones that only look like it."""

from pathlib import Path
from random import Random

import pytest

from analytics.audit.faults import Kind
from analytics.logs.partitions import find_partitions
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.records import BatchBuilder
from tests.unit.analytics.audit.copies import Copy, faults_in, told
from tests.unit.storage.support import ManualClock

START_MS = 1_700_000_000_000
RESTART_MS = 3000
ENTRY = 8


class Writing:
    """A log that is written by brokers one after the other, each stopped in good order."""

    def __init__(self, log_dir: Path, seed: int = 0) -> None:
        self.random = Random(seed)
        self._log_dir = log_dir
        self._timestamp = START_MS

    def run(
        self, appends: int, most_bytes: int, interval: int = 4096, segment: int = 60_000
    ) -> None:
        config = LogConfig(segment_bytes=segment, index_interval_bytes=interval)
        logs = LogManager([self._log_dir], config, ManualClock())
        logs.load()
        log = logs.get_or_create("t", 0)
        for _ in range(appends):
            self._append(log, self.random.randint(most_bytes // 2, most_bytes))
        logs.close()
        self._timestamp += RESTART_MS

    def _append(self, log: Log, size: int) -> None:
        self._timestamp += 100
        builder = BatchBuilder()
        builder.append(self._timestamp, b"key", bytes(size))
        log.append_as_leader(builder.build(), 0)
        log.update_high_watermark(log.end_offset)


@pytest.mark.parametrize("partition", ["sent-none-0", "transactional-0", "append-time-0"])
def test_an_offset_index_that_was_emptied_is_told_where_it_ends(
    tmp_path: Path, partition: str
) -> None:
    copy = Copy(tmp_path, partition)
    file = max(copy.files(".index"), key=lambda index: index.stat().st_size)
    file.write_bytes(b"")
    assert told(copy.faults()) == [(file.name, 0, Kind.OFFSET_INDEX)]


def test_an_offset_index_that_was_cut_between_two_entries_is_told_where_it_ends(
    tmp_path: Path,
) -> None:
    Writing(tmp_path).run(appends=200, most_bytes=2000)
    file = sorted((tmp_path / "t-0").glob("*.index"))[1]
    entries = file.read_bytes()
    assert len(entries) > 8 * ENTRY
    for left in range(0, len(entries) - 4 * ENTRY, ENTRY):
        file.write_bytes(entries[:left])
        assert told(faults_in(tmp_path)) == [(file.name, left, Kind.OFFSET_INDEX)]


@pytest.mark.parametrize("most_bytes", [40, 900, 9000])
@pytest.mark.parametrize("seed", range(3))
def test_brokers_that_are_stopped_often_leave_no_faults(
    tmp_path: Path, seed: int, most_bytes: int
) -> None:
    """Each counts anew how much it wrote since the last entry: between two stops there may be
    none, and a time index entry at each stop."""
    writing = Writing(tmp_path, seed)
    writing.run(appends=40_000 // most_bytes, most_bytes=most_bytes)
    for _ in range(60):
        writing.run(writing.random.choice((1, 1, 2, 5)), most_bytes, segment=20_000)
    writing.run(appends=100_000 // most_bytes, most_bytes=most_bytes)
    assert len(find_partitions(tmp_path)[0].segments) > 3 or most_bytes == 40
    assert faults_in(tmp_path) == []


def test_entries_that_are_made_less_often_from_some_day_on_are_no_fault(tmp_path: Path) -> None:
    writing = Writing(tmp_path)
    for interval in (500, 500, 8000, 8000, 30_000):
        writing.run(appends=60, most_bytes=1500, interval=interval)
    assert faults_in(tmp_path) == []
