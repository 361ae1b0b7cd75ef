"""Offsets, timestamps, filters and splits over logs with real indexes, against reading it all."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
)

from analytics.errors import AnalysisError
from analytics.logs.lookup import end_offset, offset_for_timestamp
from analytics.logs.partitions import find_partitions
from analytics.source.splits import Split
from storage.records.layout import Codec
from tests.unit.analytics.logs import write_log
from tests.unit.analytics.reading import batch_reader, offsets, record_reader, records, rows_of
from tests.unit.analytics.segments import START_MS, batch, write_segment

COUNT = 3000


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A log directory whose only log is open, as in a running broker."""
    directory = tmp_path_factory.mktemp("live")
    log = write_log(directory, COUNT)
    assert len(log.segments) > 5
    yield directory
    log.close()


def splits_of(reader: Any) -> list[Split]:
    return [split for split in reader.partitions() if isinstance(split, Split)]


def bytes_planned(reader: Any) -> int:
    return sum(piece.size for split in splits_of(reader) for piece in split.pieces)


def in_t(*values: int) -> str:
    return json.dumps({"topic": {str(n): value for n, value in enumerate(values)}})


@pytest.mark.parametrize(("first", "end"), [(0, 1), (5, 6), (999, 2001), (2995, 3000), (7, 7)])
def test_a_range_of_offsets_is_read_exactly_and_little_more_is_planned(
    live: Path, first: int, end: int
) -> None:
    options = {"startingOffsets": in_t(first), "endingOffsets": in_t(end)}
    assert offsets(live, **options) == list(range(first, end))
    planned = bytes_planned(record_reader(live, **options))
    whole = bytes_planned(record_reader(live))
    assert planned <= whole * (end - first) / COUNT + 4000


@pytest.mark.parametrize("at", [0, 1, 10, 1234, 2999])
def test_a_timestamp_is_found_at_its_record(live: Path, at: int) -> None:
    (log,) = find_partitions(live)
    assert offset_for_timestamp(log, START_MS + at) == at
    assert offsets(live, startingTimestamp=str(START_MS + at)) == list(range(at, COUNT))
    assert offsets(live, endingTimestamp=str(START_MS + at)) == list(range(at))


def test_a_timestamp_past_the_end_is_an_error_or_the_end_as_the_strategy_says(live: Path) -> None:
    late = {"startingTimestamp": str(START_MS + COUNT)}
    with pytest.raises(
        AnalysisError, match=r"topic-0: no record has the timestamp \d+ or a later one"
    ):
        offsets(live, **late)
    assert offsets(live, **late, startingOffsetsByTimestampStrategy="latest") == []
    assert offsets(live, endingTimestamp=str(START_MS + COUNT)) == list(range(COUNT))


def test_timestamps_of_single_partitions(live: Path) -> None:
    options = {
        "startingOffsetsByTimestamp": in_t(START_MS + 20),
        "endingOffsetsByTimestamp": in_t(START_MS + 23),
    }
    assert offsets(live, **options) == [20, 21, 22]


def test_offsets_must_name_just_the_partitions_that_are_read(live: Path) -> None:
    with pytest.raises(AnalysisError, match=r"startingOffsets: .* has also topic-1"):
        offsets(live, startingOffsets=in_t(0, 0))
    with pytest.raises(AnalysisError, match=r"endingOffsets: .* lacks topic-0"):
        offsets(live, endingOffsets='{"topic": {}}')


def test_the_end_of_a_live_log_is_found_through_its_index(live: Path) -> None:
    (log,) = find_partitions(live)
    assert end_offset(log) == COUNT


@pytest.mark.parametrize("damage", ["missing", "zeros", "garbage", "cut"])
def test_an_index_is_a_hint_and_never_believed(live: Path, tmp_path: Path, damage: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(live, copy)
    for index in (*copy.rglob("*.index"), *copy.rglob("*.timeindex")):
        data = index.read_bytes()
        if damage == "missing":
            index.unlink()
        else:
            wrong = {"zeros": bytes(len(data)), "garbage": b"\x01\x13" * 400, "cut": data[:13]}
            index.write_bytes(wrong[damage])
    options = {"startingOffsets": in_t(777), "endingOffsets": in_t(2500)}
    assert offsets(copy, **options, maxBytesPerTask="5000") == list(range(777, 2500))
    (log,) = find_partitions(copy)
    assert end_offset(log) == COUNT


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_large_segments_are_cut_at_batches_and_small_ones_gathered(
    tmp_path: Path, codec: Codec
) -> None:
    log = write_log(tmp_path, COUNT, codec=codec)
    log.close()
    for size in (3000, 50_000):
        reader = record_reader(tmp_path, maxBytesPerTask=str(size))
        splits = splits_of(reader)
        expected = bytes_planned(reader) / size
        assert 0.7 * expected <= len(splits) <= 1.7 * expected + 1
        found = [row["offset"] for row in rows_of(reader)]
        assert found == list(range(COUNT))


def test_at_least_so_many_tasks_are_made_as_asked_for(live: Path) -> None:
    assert len(splits_of(record_reader(live))) == 1
    assert len(splits_of(record_reader(live, minPartitions="8"))) >= 8


def moment(offset: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=START_MS + offset)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("offset",), 1500)], range(1500, 1501)),
        ([GreaterThan(("offset",), 2990)], range(2991, 3000)),
        ([GreaterThanOrEqual(("offset",), 100), LessThan(("offset",), 104)], range(100, 104)),
        ([In(("offset",), (5, 9))], range(5, 10)),
        ([LessThanOrEqual(("timestamp",), moment(3))], range(4)),
        ([GreaterThanOrEqual(("timestamp",), moment(2998))], range(2998, 3000)),
        ([GreaterThan(("timestamp",), moment(2996.5))], range(2997, 3000)),
        ([EqualTo(("topic",), "u")], range(0)),
        ([In(("topic",), ("topic", "u")), EqualTo(("partition",), 0)], range(3000)),
        ([GreaterThan(("partition",), 1)], range(0)),
        ([Not(EqualTo(("offset",), 3))], range(3000)),
    ],
    ids=str,
)
def test_filters_narrow_what_is_read_and_are_handed_back(
    live: Path, filters: list[Filter], expected: range
) -> None:
    reader = record_reader(live)
    whole = bytes_planned(reader)
    assert list(reader.take_filters(filters)) == filters
    assert {row["offset"] for row in rows_of(reader)} >= set(expected)
    allowed = {row["offset"] for row in rows_of(reader)}
    assert allowed <= set(range(min(expected, default=0) - 1, max(expected, default=-1) + 2))
    if len(expected) < 20 and not any(isinstance(one, LessThanOrEqual) for one in filters):
        assert bytes_planned(reader) < whole / 4


def test_filters_on_the_batch_table_keep_every_batch_that_may_match(live: Path) -> None:
    reader = batch_reader(live)
    reader.take_filters(
        [GreaterThan(("last_offset",), 1504), LessThanOrEqual(("base_offset",), 1510)]
    )
    spans = [(row["base_offset"], row["last_offset"]) for row in rows_of(reader)]
    assert spans == [(1500, 1509), (1510, 1519)]
    reader.take_filters([GreaterThan(("last_timestamp",), moment(2980))])
    assert [row["base_offset"] for row in rows_of(reader)] == [2980, 2990]


def test_the_batch_table_takes_the_same_bounds(live: Path) -> None:
    options = {"startingOffsets": in_t(1005), "endingTimestamp": str(START_MS + 1021)}
    rows = rows_of(batch_reader(live, **options))
    spans = [(row["base_offset"], row["last_offset"]) for row in rows]
    assert spans == [(1000, 1009), (1010, 1019), (1020, 1029)]


def test_topics_are_chosen_by_name_by_pattern_and_by_partition(tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "ab-0", "__consumer_offsets-0"):
        write_segment(tmp_path, name, 0, [batch(0, 1)])

    def names(**options: str) -> list[str]:
        return [f"{row['topic']}-{row['partition']}" for row in records(tmp_path, **options)]

    assert names(subscribe="a") == ["a-0", "a-1"]
    assert names(subscribe="ab,__consumer_offsets") == ["__consumer_offsets-0", "ab-0"]
    assert names(subscribePattern=".*") == ["a-0", "a-1", "ab-0"]
    assert names(assign='{"a": [1], "ab": [0]}') == ["a-1", "ab-0"]
    assert names() == ["__consumer_offsets-0", "a-0", "a-1", "ab-0"]
    with pytest.raises(AnalysisError, match="there is no log of nope in these directories"):
        names(subscribe="nope")
    with pytest.raises(AnalysisError, match="there is no log of a-7"):
        names(assign='{"a": [7]}')


def test_of_replicas_side_by_side_the_one_that_reaches_furthest_is_read(tmp_path: Path) -> None:
    write_segment(tmp_path / "one", "t-0", 0, [batch(0, 3)])
    write_segment(tmp_path / "two", "t-0", 0, [batch(0, 3), batch(3, 2)])
    assert offsets(tmp_path) == [0, 1, 2, 3, 4]
    assert offsets(f"{tmp_path}/one,{tmp_path}/two") == [0, 1, 2, 3, 4]
    assert len(rows_of(batch_reader(tmp_path))) == 3


def test_records_below_the_log_start_are_not_read(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 5)])
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    assert offsets(tmp_path) == [3, 4]


def test_offsets_that_are_gone_fail_the_query_unless_told_otherwise(tmp_path: Path) -> None:
    write_segment(tmp_path, "topic-0", 10, [batch(10, 5)])
    with pytest.raises(AnalysisError, match="topic-0 begins at 10, not 7: records are gone"):
        offsets(tmp_path, startingOffsets=in_t(7))
    with pytest.raises(AnalysisError, match="topic-0 ends at 15, not 20: records are gone"):
        offsets(tmp_path, endingOffsets=in_t(20))
    options = {"startingOffsets": in_t(7), "endingOffsets": in_t(20), "failOnDataLoss": "false"}
    assert offsets(tmp_path, **options) == list(range(10, 15))


def test_a_place_named_by_a_uri_is_read_through_arrow(live: Path) -> None:
    options = {"startingOffsets": in_t(2000), "maxBytesPerTask": "5000"}
    assert offsets(f"file://{live}", **options) == list(range(2000, COUNT))
    with pytest.raises(AnalysisError, match="there is no such directory"):
        offsets(f"file://{live}/nope")
    with pytest.raises(AnalysisError, match="cannot be read"):
        offsets("nosuch://host/logs")
