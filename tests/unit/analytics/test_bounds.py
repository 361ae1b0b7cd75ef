"""Where queries begin and end in logs that are damaged, undecided or asked for the wrong way
round."""

import json
from pathlib import Path
from struct import Struct

import pytest

from analytics.errors import AnalysisError
from analytics.logs.partitions import find_partitions
from analytics.problems import DamagedLogError
from analytics.source.bounds import ReadableLog
from analytics.source.options import Isolation
from storage.log import Log
from storage.records.control import ControlType
from storage.records.layout import MAGIC_1, Codec
from storage.records.legacy import encode_message
from storage.records.legacy_builder import LegacyBuilder
from tests.unit.analytics.logs import SMALL_SEGMENTS, Transactions, write_log
from tests.unit.analytics.reading import batch_reader, offsets, record_reader, rows_of
from tests.unit.analytics.segments import START_MS, batch, write_segment
from tests.unit.storage.support import ManualClock, open_log

COMMITTED = {"isolationLevel": "read_committed"}


def at(offset: int) -> str:
    return json.dumps({"t": {"0": offset}})


def log_of_one_transaction(directory: Path) -> tuple[Log, Transactions]:
    """Two records, committed, and their marker."""
    log = open_log(directory, SMALL_SEGMENTS, clock=ManualClock(START_MS))
    producers = Transactions(log)
    producers.write(1, 2)
    producers.end(1, ControlType.COMMIT)
    return log, producers


def test_a_query_that_ends_before_it_starts_is_refused_as_by_spark(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 9)])
    with pytest.raises(AnalysisError, match="t-0: startingOffsets is 5, behind endingOffsets, 4"):
        offsets(tmp_path, startingOffsets=at(5), endingOffsets=at(4))
    times = {"startingTimestamp": str(START_MS + 5), "endingTimestamp": str(START_MS + 4)}
    with pytest.raises(AnalysisError, match="startingTimestamp is 5, behind endingTimestamp, 4"):
        offsets(tmp_path, **times)
    assert offsets(tmp_path, startingOffsets=at(5), endingOffsets=at(5)) == []
    assert offsets(tmp_path, startingOffsets=at(99)) == []


def test_a_start_that_retention_has_moved_past_the_end_is_no_mistake(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 10, [batch(10, 9)])
    options = {"startingOffsets": at(5), "endingOffsets": at(7), "failOnDataLoss": "false"}
    assert offsets(tmp_path, **options) == []
    assert offsets(tmp_path, endingOffsets=at(7)) == []


def test_the_batch_table_knows_the_topics_that_are_not_there(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 1)])
    with pytest.raises(AnalysisError, match="there is no log of u in these directories"):
        rows_of(batch_reader(tmp_path, subscribe="u"))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_damaged_batch_that_may_hold_a_timestamp_is_where_it_is_found(
    tmp_path: Path, codec: Codec
) -> None:
    damaged = batch(3, 3, codec)
    damaged[-1] ^= 255
    write_segment(tmp_path, "t-0", 0, [batch(0, 3), damaged, batch(6, 3)])
    start = {"startingTimestamp": str(START_MS + 4)}
    assert offsets(tmp_path, **start, onDamage="skip") == [6, 7, 8]
    assert offsets(tmp_path, endingTimestamp=start["startingTimestamp"]) == [0, 1, 2]
    with pytest.raises(DamagedLogError):
        offsets(tmp_path, **start)


def test_a_time_index_that_lies_hides_nothing(tmp_path: Path) -> None:
    log = write_log(tmp_path, 1000)
    log.close()
    entry = Struct(">qi")
    for index in tmp_path.rglob("*.timeindex"):
        index.write_bytes(entry.pack(START_MS - 5, 1) + entry.pack(START_MS - 4, 100))
    assert offsets(tmp_path, startingTimestamp=str(START_MS + 7)) == list(range(7, 1000))
    assert offsets(tmp_path, endingTimestamp=str(START_MS + 7)) == list(range(7))


def test_a_wrapper_that_cannot_be_opened_is_no_place_for_a_cut(tmp_path: Path) -> None:
    good = LegacyBuilder(MAGIC_1, base_offset=0, codec=Codec.GZIP)
    good.append(START_MS, b"k", b"v", 0)
    bad = encode_message(MAGIC_1, 1, START_MS, None, b"no gzip", Codec.GZIP)
    segment = write_segment(tmp_path, "t-0", 0, [good.build(), bad])
    position = segment.stat().st_size - len(bad)
    segment.with_suffix(".index").write_bytes(Struct(">ii").pack(1, position))
    options = {"maxBytesPerTask": "1", "onDamage": "skip"}
    assert offsets(tmp_path, **options) == [0]
    assert offsets(tmp_path, **options, endingOffsets=at(1)) == [0]


def test_nothing_is_planned_for_a_range_without_offsets(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 9)])
    assert not record_reader(tmp_path, startingOffsets=at(4), endingOffsets=at(4)).partitions()


def test_what_is_not_committed_has_no_timestamp_yet(tmp_path: Path) -> None:
    log, producers = log_of_one_transaction(tmp_path)
    producers.write(2, 5)  # its third is the first that is so young
    times = {"startingTimestamp": str(START_MS + 2)}
    assert offsets(tmp_path, **times) == [5, 6, 7]
    with pytest.raises(AnalysisError, match="no record has the timestamp"):
        offsets(tmp_path, **times, **COMMITTED)
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert offsets(tmp_path, **times, **latest, **COMMITTED) == []
    log.close()


def test_what_is_appended_after_the_log_was_listed_is_not_taken_for_committed(
    tmp_path: Path,
) -> None:
    log, producers = log_of_one_transaction(tmp_path)
    (listed,) = find_partitions(tmp_path)
    producers.write(2, 5)
    assert ReadableLog(listed, Isolation.UNCOMMITTED).end_offset == 8
    assert ReadableLog(listed, Isolation.COMMITTED).end_offset == 3
    log.close()


def test_a_segment_replaced_under_a_reader_of_what_is_committed_hides_what_came_later(
    tmp_path: Path,
) -> None:
    log, producers = log_of_one_transaction(tmp_path)
    reader = record_reader(tmp_path, **COMMITTED)
    splits = list(reader.partitions())
    producers.write(2, 5)
    (segment,) = (tmp_path / "topic-0").glob("*.log")
    copy = segment.with_suffix(".copy")
    copy.write_bytes(segment.read_bytes())
    copy.rename(segment)
    rows = [row for split in splits for table in reader.read(split) for row in table.to_pylist()]
    assert [row["offset"] for row in rows] == [0, 1]
    log.abandon()
