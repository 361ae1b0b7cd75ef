"""What stays of single batches, and how segments are joined or divided."""

from dataclasses import replace
from pathlib import Path

import pytest

from storage.compaction.compact import compact_log
from storage.compaction.settings import CleanerSettings
from storage.errors import LogDirectoryError
from storage.faulty_files import Fault, FaultyFiles
from storage.log import Log
from storage.log_config import INT32_MAX
from storage.records.builder import ProducerInfo
from storage.records.control import CONTROL_KEY, ControlType
from storage.records.layout import Codec
from tests.unit.storage.compaction.support import (
    COMPACTED,
    SETTINGS,
    append,
    append_pairs,
    append_segments,
    batches_of,
    committed_of,
    end_transaction,
    file_names,
    keyed_batch,
    open_compacted,
    pairs_of,
    transactional,
)
from tests.unit.storage.support import NOW, ManualClock


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_a_marker_stays_although_a_record_has_its_key(tmp_path: Path, kind: ControlType) -> None:
    """Kafka 2.5 loses a transaction's marker to an ordinary record with the same four bytes."""
    log = open_compacted(tmp_path)
    append(log, keyed_batch([(b"a", b"1")], producer=transactional(7)))
    end_transaction(log, 7, commits=kind is ControlType.COMMIT)
    append_segments(log, [(CONTROL_KEY.pack(0, kind), b"mine")], [(b"b", b"2")])
    before = committed_of(log)
    compact_log(log, SETTINGS)
    assert [batch.header.is_control for batch in batches_of(log)][:2] == [False, True]
    assert committed_of(log) == before


def test_a_batch_larger_than_the_buffer_is_cleaned(tmp_path: Path) -> None:
    log = open_compacted(tmp_path, segment_bytes=200_000)
    value = b"x" * 100_000
    append_segments(log, [(b"a", value), (b"a", value)], [(b"b", b"1")])
    compact_log(log, replace(SETTINGS, io_buffer_size=1))
    assert [offset for offset, _, _ in pairs_of(log)] == [1, 2]


def test_a_map_that_is_full_cleans_the_log_in_several_runs(tmp_path: Path) -> None:
    log = open_compacted(tmp_path)
    pairs = [(b"%d" % (number % 30), b"%d" % number) for number in range(90)]
    append_segments(log, *[pairs[start : start + 9] for start in range(0, 90, 9)])
    little = CleanerSettings(dedupe_buffer_size=250)
    ends = []
    while (summary := compact_log(log, little)) is not None:
        ends.append(summary.end_offset)
    assert ends == sorted(set(ends))
    assert len(ends) > 3
    assert [offset for offset, _, _ in pairs_of(log)] == list(range(60, 90))


def test_offsets_too_far_apart_for_one_segment_get_several(tmp_path: Path) -> None:
    log = open_compacted(tmp_path, segment_bytes=100_000)
    for offset in (0, INT32_MAX - 5, INT32_MAX + 5, 2 * INT32_MAX):
        batch = keyed_batch([(b"%d" % offset, b"value")])
        batch[:8] = offset.to_bytes(8, "big")
        log.append_as_follower(batch)
    log.roll()
    log.update_high_watermark(log.end_offset)
    before = pairs_of(log)
    compact_log(log, SETTINGS)
    assert pairs_of(log) == before
    for segment in list(log.segments)[:-1]:
        assert segment.next_offset() - 1 - segment.base_offset <= INT32_MAX


def test_tombstones_go_after_their_time_and_not_before(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_compacted(tmp_path, clock=clock, delete_retention_ms=1000)
    append_segments(log, [(b"a", b"1"), (b"b", b"2")], [(b"a", None)])
    compact_log(log, SETTINGS)
    assert (2, b"a", None) in pairs_of(log)
    for passes, stays in ((500, True), (5_000, True), (1, False)):
        clock.advance(passes)
        # Too large to be joined with what is older, which would make that as young.
        append_segments(log, [(b"c", b"%850d" % passes)])
        compact_log(log, SETTINGS)
        assert ((2, b"a", None) in pairs_of(log)) is stays, passes


@pytest.mark.parametrize("codec", Codec)
def test_a_rebuilt_batch_keeps_offsets_times_and_producer(tmp_path: Path, codec: Codec) -> None:
    log = open_compacted(tmp_path)
    producer = ProducerInfo(7, 1, 0)
    append(log, keyed_batch([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")], codec, producer))
    log.roll()
    append_segments(log, [(b"a", b"4")], [(b"c", None)])
    compact_log(log, SETTINGS)
    header = batches_of(log)[0].header
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 1)
    assert (header.base_timestamp, header.max_timestamp) == (NOW + 1, NOW + 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 0)
    assert header.codec is codec
    assert pairs_of(log)[0] == (1, b"b", b"2")


def test_an_error_while_segments_are_exchanged_takes_the_directory_offline(tmp_path: Path) -> None:
    log = open_compacted(tmp_path)
    append_segments(log, [(b"a", b"1")], [(b"a", b"2")])
    files = log.environment.files
    assert isinstance(files, FaultyFiles)
    files.faults.append(Fault("replace", path_contains=".swap"))
    with pytest.raises(LogDirectoryError):
        compact_log(log, SETTINGS)


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = open_compacted(tmp_path)
    append_segments(log, [(b"a", b"1"), (b"b", b"2")], [(b"a", b"3")])
    before = pairs_of(log)
    files = log.environment.files
    assert isinstance(files, FaultyFiles)
    files.space_left = 50
    with pytest.raises(OSError, match="No space left"):
        compact_log(log, SETTINGS)
    assert pairs_of(log) == before
    assert not [name for name in file_names(log) if name.endswith(".cleaned")]
    files.space_left = None
    append_pairs(log, (b"a", b"4"))
    assert compact_log(log, SETTINGS) is not None


def test_segments_are_joined_as_long_as_they_fit(tmp_path: Path) -> None:
    log = open_compacted(tmp_path, segment_bytes=1000)
    append_segments(log, *[[(b"%d" % number, b"x" * 200)] for number in range(10)])
    size = log.segments.first.size
    compact_log(log, SETTINGS)
    per_segment = 1000 // size
    assert sizes(log) == [per_segment * size] * (10 // per_segment) + [
        rest for rest in [10 % per_segment * size] if rest
    ]


def sizes(log: Log) -> list[int]:
    return [segment.size for segment in log.segments][:-1]


def test_a_log_that_comes_from_another_policy_loses_records_without_key(tmp_path: Path) -> None:
    log = open_compacted(tmp_path, replace(COMPACTED, cleanup_policy=frozenset({"delete"})))
    append_segments(log, [(None, b"1"), (b"a", b"2"), (None, b"3")], [(b"b", b"4")])
    log.update_config(COMPACTED)
    summary = compact_log(log, SETTINGS)
    assert summary is not None
    assert summary.records_without_key == 2
    assert pairs_of(log) == [(1, b"a", b"2"), (3, b"b", b"4")]
