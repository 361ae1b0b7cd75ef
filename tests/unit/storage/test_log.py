"""Append, read, roll and reopen of one partition's log."""

from pathlib import Path

import pytest

from storage.append_info import ReadIsolation
from storage.errors import OffsetOutOfRangeError
from storage.log_config import LogConfig
from storage.records.errors import CorruptRecordError
from tests.unit.storage.support import (
    NOW,
    append_values,
    make_batch,
    open_log,
    read_values,
)


def values(count: int) -> list[bytes]:
    return [f"value {number}".encode() for number in range(count)]


def test_appended_records_are_read_back_with_consecutive_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert append_values(log, *values(10)) == list(range(10))
    assert read_values(log) == list(enumerate(values(10)))


def test_offset_and_leader_epoch_are_patched_in_place(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, b"first")
    batch = make_batch(b"second")
    info = log.append_as_leader(batch, leader_epoch=7)
    assert (info.first_offset, info.last_offset, info.record_count) == (1, 1, 1)
    assert batch[:8] == (1).to_bytes(8, "big")
    assert batch[12:16] == (7).to_bytes(4, "big")
    assert (log.directory / "00000000000000000000.log").read_bytes().endswith(batch)


def test_read_inside_a_batch_returns_that_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = make_batch(b"a", b"b", b"c")
    log.append_as_leader(batch, 0)
    log.update_high_watermark(3)
    assert log.read(1, 1 << 20).slice.read() == batch


def test_read_gives_one_batch_even_if_it_exceeds_the_limit(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, b"a" * 500, b"b" * 500)
    whole = log.read(0, 10)
    assert len(whole.slice) > 500
    assert whole.first_batch_whole
    cut = log.read(0, 10, minimum_one_batch=False)
    assert len(cut.slice) == 10
    assert not cut.first_batch_whole


def test_read_ends_at_the_high_watermark_except_for_followers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, *values(3))
    log.append_as_leader(make_batch(b"unreplicated"), 0)
    committed = log.read(0, 1 << 20)
    everything = log.read(0, 1 << 20, ReadIsolation.LOG_END)
    assert everything.slice.read().startswith(committed.slice.read())
    assert len(committed.slice) < len(everything.slice)
    assert len(log.read(3, 1 << 20).slice) == 0
    assert len(log.read(3, 1 << 20, ReadIsolation.LOG_END).slice) > 0


def test_read_outside_the_log_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, *values(3))
    assert len(log.read(3, 100).slice) == 0
    with pytest.raises(OffsetOutOfRangeError) as caught:
        log.read(4, 100)
    assert (caught.value.start_offset, caught.value.end_offset) == (0, 3)


def test_a_damaged_batch_is_refused_and_leaves_the_log_untouched(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, b"good")
    batch = make_batch(b"bad")
    batch[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        log.append_as_leader(batch, 0)
    assert log.end_offset == 1
    assert read_values(log) == [(0, b"good")]


def test_log_rolls_by_size_and_reads_across_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=300, index_interval_bytes=100))
    append_values(log, *values(20))
    assert len(log.segments) > 4
    assert read_values(log) == list(enumerate(values(20)))
    assert read_values(log, 13) == list(enumerate(values(20)))[13:]


def test_offset_for_timestamp_is_the_record_not_the_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=600, index_interval_bytes=100))
    for number in range(10):
        log.append_as_leader(make_batch(b"a", b"b", b"c", timestamp=NOW + number * 100), 3)
    found = log.offset_for_timestamp(NOW + 501)
    assert found == (NOW + 501, 16, 3)
    assert log.offset_for_timestamp(NOW - 5) == (NOW, 0, 3)
    assert log.offset_for_timestamp(NOW + 10_000) is None


@pytest.mark.parametrize("clean", [True, False])
def test_reopened_log_has_the_same_records(tmp_path: Path, clean: bool) -> None:
    config = LogConfig(segment_bytes=1000, index_interval_bytes=100)
    log = open_log(tmp_path, config)
    append_values(log, *values(30))
    if clean:
        log.close()
    reopened = open_log(tmp_path, config, clean=clean)
    assert reopened.end_offset == 30
    reopened.update_high_watermark(30)
    assert read_values(reopened) == list(enumerate(values(30)))
    assert append_values(reopened, b"more") == [30]


def test_slice_can_be_read_after_its_files_are_released(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, b"kept")
    found = log.read(0, 1 << 20).slice
    log.release_files()
    (log.directory / "00000000000000000000.log").unlink()
    assert b"kept" in found.read()
