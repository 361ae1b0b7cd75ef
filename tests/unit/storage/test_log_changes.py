"""Rolling, truncation, retention and the log start offset."""

from pathlib import Path

import pytest

from storage.append_info import AppendInfo
from storage.errors import (
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordBatchTooLargeError,
    UnexpectedAppendOffsetError,
)
from storage.log import Log
from storage.log_config import INT32_MAX, LogConfig
from storage.retention import enforce_retention
from tests.unit.storage.support import (
    NOW,
    ManualClock,
    append_values,
    make_batch,
    open_log,
    read_values,
)

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=50)


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def append(log: Log, timestamp: int) -> AppendInfo:
    return log.append_as_leader(make_batch(timestamp=timestamp), 0)


# Rolling


def test_log_rolls_by_the_age_of_its_first_record(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    append(log, NOW)
    append(log, NOW + 1000)
    assert bases(log) == [0]
    append(log, NOW + 1001)
    assert bases(log) == [0, 2]


def test_log_rolls_by_its_own_age_where_records_have_no_time(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, LogConfig(segment_ms=1000), clock=clock)
    append(log, -1)
    clock.advance(1001)
    append(log, -1)
    assert bases(log) == [0, 1]


def test_jitter_makes_a_segment_roll_earlier(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000, segment_jitter_ms=500))
    log.segments.active.roll_jitter_ms = 400
    append(log, NOW)
    append(log, NOW + 601)
    assert bases(log) == [0, 1]
    assert 0 <= log.segments.active.roll_jitter_ms < 500


def test_log_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    config = LogConfig(segment_index_bytes=36, index_interval_bytes=1)
    log = open_log(tmp_path, config)
    for number in range(9):
        append(log, NOW + number)
    # Three entries fit into the time index, of which one is kept for the roll.
    assert bases(log) == [0, 3, 6]
    assert log.offset_for_timestamp(NOW + 5) == (NOW + 5, 5, 0)


def test_log_rolls_when_an_offset_is_too_far_from_its_base(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(bytes(make_batch(base_offset=0)))
    log.append_as_follower(bytes(make_batch(base_offset=INT32_MAX)))
    assert bases(log) == [0]
    log.append_as_follower(bytes(make_batch(base_offset=INT32_MAX + 1)))
    assert bases(log) == [0, INT32_MAX + 1]
    log.update_high_watermark(log.end_offset)
    assert [offset for offset, _ in read_values(log)] == [0, INT32_MAX, INT32_MAX + 1]


def test_rolling_an_empty_segment_does_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.roll()
    assert bases(log) == [0]
    append(log, NOW)
    log.roll()
    log.roll()
    assert bases(log) == [0, 1]


def test_records_larger_than_a_segment_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=100))
    with pytest.raises(RecordBatchTooLargeError):
        log.append_as_leader(make_batch(b"x" * 100), 0)


def test_preallocated_segments_are_cut_when_they_are_rolled_or_closed(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(preallocate=True, segment_bytes=1000))
    append_values(log, b"a", b"b")
    first = log.directory / "00000000000000000000.log"
    assert first.stat().st_size == 1000
    size = log.segments.active.size
    log.roll()
    assert first.stat().st_size == size
    append_values(log, b"c")
    reopened = open_log(tmp_path, LogConfig(preallocate=True, segment_bytes=1000))
    reopened.update_high_watermark(9)
    assert [value for _, value in read_values(reopened)] == [b"a", b"b", b"c"]


# Followers


def test_follower_refuses_offsets_out_of_order_and_below_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(OffsetsOutOfOrderError):
        log.append_as_follower(bytes(make_batch(base_offset=5) + make_batch(base_offset=3)))
    log.append_as_follower(bytes(make_batch(base_offset=5)))
    with pytest.raises(UnexpectedAppendOffsetError) as caught:
        log.append_as_follower(bytes(make_batch(base_offset=4)))
    assert caught.value.first_offset == 4


def test_follower_leaves_out_a_batch_that_is_cut_off(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    whole = make_batch(base_offset=0)
    info = log.append_as_follower(bytes(whole + make_batch(base_offset=1)[:-5]))
    assert (info.last_offset, info.size_in_bytes) == (0, len(whole))
    nothing = log.append_as_follower(bytes(make_batch(base_offset=1)[:-5]))
    assert nothing.record_count == 0
    assert log.end_offset == 1


# Truncation


@pytest.mark.parametrize("offset", [0, 1, 5, 12, 19, 20, 25])
def test_truncated_log_ends_at_the_offset_and_goes_on_from_there(
    tmp_path: Path, offset: int
) -> None:
    log = open_log(tmp_path, SMALL)
    values = [f"value {number}".encode() for number in range(20)]
    append_values(log, *values)
    assert log.truncate_to(offset) == (offset < 20)
    expected = min(offset, 20)
    assert log.end_offset == log.high_watermark == expected
    assert log.recovery_point <= expected
    assert append_values(log, b"new") == [expected]
    assert read_values(log) == [*enumerate(values[:expected]), (expected, b"new")]
    log.close()
    reopened = open_log(tmp_path, SMALL, clean=True)
    assert reopened.end_offset == expected + 1


def test_truncation_into_a_batch_drops_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, b"first")
    log.append_as_leader(make_batch(b"a", b"b", b"c"), 0)
    log.truncate_to(2)
    assert log.end_offset == 2
    log.append_as_leader(make_batch(b"next"), 0)
    log.update_high_watermark(9)
    assert read_values(log) == [(0, b"first"), (2, b"next")]


def test_truncation_corrects_the_largest_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=1))
    for timestamp in (NOW, NOW + 50, NOW + 20):
        append(log, timestamp)
    log.truncate_to(1)
    assert log.segments.active.largest == (NOW, 0)
    assert log.offset_for_timestamp(NOW + 1) is None


def test_truncation_below_the_first_segment_empties_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, start_offset=50)
    append_values(log, b"a")
    assert log.truncate_to(10)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (10, 10, 10)
    assert append_values(log, b"new") == [10]


def test_full_truncation_starts_anew_at_an_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    append_values(log, *[b"value"] * 10)
    log.truncate_fully_and_start_at(100)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (100, 100, 100)
    assert log.epochs.entries == []
    assert append_values(log, b"new") == [100]
    reopened = open_log(tmp_path, SMALL)
    assert (reopened.start_offset, reopened.end_offset) == (100, 101)


# Log start offset and retention


def test_records_before_the_start_offset_are_hidden_and_their_segments_removed(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path, SMALL)
    append_values(log, *[b"value"] * 10)
    log.advance_start_offset(7)
    assert log.earliest_offset() == (-1, 7, 0)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(6, 100)
    assert [offset for offset, _ in read_values(log)] == [7, 8, 9]
    removed = enforce_retention(log)
    assert removed == len([base for base in (0, 3, 6) if base + 3 <= 7])
    assert bases(log)[0] <= 7
    assert log.start_offset == 7


def test_start_offset_cannot_pass_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_values(log, b"a", b"b")
    log.append_as_leader(make_batch(b"unreplicated"), 0)
    with pytest.raises(OffsetOutOfRangeError):
        log.advance_start_offset(3)
    log.advance_start_offset(2)
    log.advance_start_offset(1)
    assert log.start_offset == 2


def test_retention_by_time_keeps_what_is_young_or_not_replicated(tmp_path: Path) -> None:
    clock = ManualClock()
    config = LogConfig(segment_bytes=200, retention_ms=1000)
    log = open_log(tmp_path, config, clock=clock)
    for number in range(6):
        append(log, NOW + 400 * number)
    clock.advance(400 * 5)
    assert enforce_retention(log) == 0, "nothing is replicated"
    log.update_high_watermark(6)
    enforce_retention(log)
    assert log.start_offset == bases(log)[0] == 2
    clock.advance(10_000)
    enforce_retention(log)
    assert (log.start_offset, log.end_offset, bases(log)) == (6, 6, [6])
    assert enforce_retention(log) == 0, "an empty last segment stays"


def test_retention_by_size_keeps_at_least_the_size(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200, retention_bytes=500))
    append_values(log, *[b"value"] * 20)
    size = log.segments.first.size
    enforce_retention(log)
    assert 500 <= log.size_in_bytes < 500 + size


def test_compacted_logs_are_only_cut_at_their_start_offset(tmp_path: Path) -> None:
    clock = ManualClock()
    config = LogConfig(
        segment_bytes=200, retention_ms=1, retention_bytes=1, cleanup_policy=frozenset({"compact"})
    )
    log = open_log(tmp_path, config, clock=clock)
    append_values(log, *[b"value"] * 10)
    clock.advance(10_000)
    assert enforce_retention(log) == 0
    log.advance_start_offset(5)
    assert enforce_retention(log) > 0


def test_removed_segments_are_renamed_and_go_after_the_delay(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, SMALL, clock=clock)
    append_values(log, *[b"value"] * 10)
    slice_of_first = log.read(0, 1 << 20).slice
    log.advance_start_offset(9)
    enforce_retention(log)
    deleted = sorted(path.name for path in log.directory.glob("*.deleted"))
    assert "00000000000000000000.log.deleted" in deleted
    deletes = log.environment.deferred_deletes
    clock.advance(59_999)
    assert deletes.run(log.environment.files, clock()) == 0
    clock.advance(1)
    assert deletes.run(log.environment.files, clock()) == len(deleted)
    assert not list(log.directory.glob("*.deleted"))
    assert len(deletes) == 0
    assert len(slice_of_first.read()) == len(slice_of_first)


# Old clients


def test_segment_offsets_before_a_time(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, LogConfig(segment_bytes=150), clock=clock)
    append_values(log, *[b"value"] * 4)
    starts = [*bases(log), 4]
    assert log.segment_offsets_before(-1, 100) == starts[::-1]
    assert log.segment_offsets_before(-1, 2) == starts[:-3:-1]
    assert log.segment_offsets_before(-2, 5) == [0]
    assert log.segment_offsets_before(0, 5) == []


def test_max_timestamp_is_found_in_any_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=150))
    assert log.max_timestamp_offset() is None
    for timestamp in (NOW, NOW + 70, NOW + 30):
        append(log, timestamp)
    assert log.max_timestamp_offset() == (NOW + 70, 1, 0)
