"""The streaming reader, driven as Spark drives it, over logs that grow."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from analytics.errors import AnalysisError
from analytics.source.admission import AdmittingLogStreamReader
from analytics.source.options import parse_options
from analytics.source.streaming import limited
from storage.records.control import ControlType
from tests.unit.analytics.logs import SMALL_SEGMENTS, Transactions, append, write_log
from tests.unit.analytics.segments import START_MS, batch, write_segment
from tests.unit.analytics.streams import EARLIEST, offsets, old_reader, read, reader
from tests.unit.storage.support import ManualClock, open_log


def test_a_new_query_starts_at_the_end_unless_told_otherwise(tmp_path: Path) -> None:
    log = write_log(tmp_path, 100)
    assert reader(tmp_path).initialOffset() == {"topic": {"0": 100}}
    assert reader(tmp_path, **EARLIEST).initialOffset() == {"topic": {"0": 0}}
    log.close()


def test_batches_follow_a_log_without_gap_or_overlap(tmp_path: Path) -> None:
    log = write_log(tmp_path, 100)
    stream = reader(tmp_path, **EARLIEST)
    start = stream.initialOffset()
    found: list[int] = []
    for more in (0, 0, 7, 500):
        append(log, more)
        end = stream.latestOffset(start, ReadAllAvailable())
        found += offsets(stream, start, end)
        start = end
    assert found == list(range(607))
    assert start == {"topic": {"0": 607}}
    log.close()


def test_a_batch_that_is_asked_for_again_is_the_same(tmp_path: Path) -> None:
    log = write_log(tmp_path, 100)
    stream = reader(tmp_path, **EARLIEST)
    start, end = {"topic": {"0": 13}}, {"topic": {"0": 77}}
    first = read(stream, start, end)
    append(log, 50)
    assert read(reader(tmp_path), start, end) == first
    assert [offset for _, offset in first] == list(range(13, 77))
    log.close()


def test_half_a_batch_waits_until_it_is_whole(tmp_path: Path) -> None:
    whole = batch(3, 3)
    file = write_segment(tmp_path, "t-0", 0, [batch(0, 3), whole[:-5]])
    stream = reader(tmp_path, **EARLIEST)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert end == {"t": {"0": 3}}
    with file.open("ab") as stream_of_file:
        stream_of_file.write(whole[-5:])
    assert offsets(stream, end, stream.latestOffset(end, ReadAllAvailable())) == [3, 4, 5]


def test_a_trigger_takes_no_more_offsets_than_allowed_and_all_in_the_end(tmp_path: Path) -> None:
    write_segment(tmp_path, "a-0", 0, [batch(0, 100)])
    write_segment(tmp_path, "b-0", 0, [batch(0, 10)])
    write_segment(tmp_path, "c-0", 0, [batch(0, 1)])
    stream = reader(tmp_path, **EARLIEST, maxOffsetsPerTrigger="20")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(20)
    start = stream.initialOffset()
    found: list[tuple[str, int]] = []
    while (end := stream.latestOffset(start, limit)) != start:
        rows = read(stream, start, end)
        assert 0 < len(rows) <= 20 + 2  # each partition moves, by one record at least
        found += rows
        start = end
    expected = [("a-0", n) for n in range(100)] + [("b-0", n) for n in range(10)] + [("c-0", 0)]
    assert sorted(found) == expected


def test_a_limit_is_shared_in_proportion() -> None:
    start = {("a", 0): 0, ("a", 1): 50}
    assert limited(start, {("a", 0): 300, ("a", 1): 150}, 40) == {("a", 0): 30, ("a", 1): 60}
    assert limited(start, {("a", 0): 3, ("a", 1): 51}, 40) == {("a", 0): 3, ("a", 1): 51}


def test_a_trigger_waits_for_enough_offsets_but_not_for_ever(tmp_path: Path) -> None:
    file = write_segment(tmp_path, "t-0", 0, [batch(0, 3)])
    now = [100.0]
    options = {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "10s", **EARLIEST}
    stream = AdmittingLogStreamReader(
        parse_options({"path": str(tmp_path), **options}, is_streaming=True), lambda: now[0]
    )
    limit = stream.getDefaultReadLimit()
    assert stream.latestOffset(stream.initialOffset(), limit) == {"t": {"0": 3}}  # as in Spark
    with file.open("ab") as opened:
        opened.write(batch(3, 4))
    start = {"t": {"0": 3}}
    assert stream.latestOffset(start, limit) == start
    now[0] = 109.9
    assert stream.latestOffset(start, limit) == start
    now[0] = 110.0
    assert stream.latestOffset(start, limit) == {"t": {"0": 7}}
    now[0] = 111.0
    with file.open("ab") as opened:
        opened.write(batch(7, 5))
    assert stream.latestOffset({"t": {"0": 7}}, limit) == {"t": {"0": 12}}


def test_a_query_that_takes_what_is_there_does_not_wait_for_more(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 10)])
    limits = {"minOffsetsPerTrigger": "6", "maxOffsetsPerTrigger": "6"}
    stream = reader(tmp_path, **EARLIEST, **limits)
    stream.prepareForTriggerAvailableNow()
    limit = stream.getDefaultReadLimit()
    assert stream.latestOffset({"t": {"0": 0}}, limit) == {"t": {"0": 6}}
    assert stream.latestOffset({"t": {"0": 6}}, limit) == {"t": {"0": 10}}


def test_partitions_and_topics_that_come_later_are_read_from_their_beginning(
    tmp_path: Path,
) -> None:
    write_segment(tmp_path, "ab-0", 0, [batch(0, 3)])
    stream = reader(tmp_path, subscribePattern="a.*")
    start = stream.initialOffset()
    assert start == {"ab": {"0": 3}}
    write_segment(tmp_path, "ab-1", 0, [batch(0, 2)])
    write_segment(tmp_path, "ac-0", 0, [batch(0, 1)])
    write_segment(tmp_path, "b-0", 0, [batch(0, 1)])
    end = stream.latestOffset(start, ReadAllAvailable())
    assert read(stream, start, end) == [("ab-1", 0), ("ab-1", 1), ("ac-0", 0)]


def test_a_directory_without_logs_is_one_that_is_waited_for(tmp_path: Path) -> None:
    stream = reader(tmp_path, subscribe="t")
    assert stream.initialOffset() == {}
    write_segment(tmp_path, "t-0", 0, [batch(0, 2)])
    end = stream.latestOffset({}, ReadAllAvailable())
    assert offsets(stream, {}, end) == [0, 1]


def test_with_trigger_available_now_nothing_is_read_that_came_later(tmp_path: Path) -> None:
    file = write_segment(tmp_path, "t-0", 0, [batch(0, 3)])
    stream = reader(tmp_path, **EARLIEST)
    stream.prepareForTriggerAvailableNow()
    first = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert first == {"t": {"0": 3}}
    with file.open("ab") as opened:
        opened.write(batch(3, 3))
    assert stream.latestOffset(first, ReadAllAvailable()) == first


def test_with_trigger_available_now_a_query_may_start_at_the_end_of_a_log_that_grows(
    tmp_path: Path,
) -> None:
    file = write_segment(tmp_path, "t-0", 0, [batch(0, 3)])
    stream = reader(tmp_path)
    stream.prepareForTriggerAvailableNow()
    with file.open("ab") as opened:
        opened.write(batch(3, 3))
    start = stream.initialOffset()
    assert start == {"t": {"0": 6}}
    assert stream.latestOffset(start, ReadAllAvailable()) == start


def test_a_directory_that_comes_later_keeps_no_other_waiting(tmp_path: Path) -> None:
    write_segment(tmp_path / "one", "t-0", 0, [batch(0, 2)])
    options = {"path": f"{tmp_path}/one,{tmp_path}/two", **EARLIEST}
    stream = AdmittingLogStreamReader(parse_options(options, is_streaming=True))
    start = stream.initialOffset()
    assert start == {"t": {"0": 0}}
    write_segment(tmp_path / "two", "t-1", 0, [batch(0, 1)])
    assert stream.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 2, "1": 1}}


def test_offsets_to_start_at_must_name_just_the_partitions_that_are_read(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 2)])
    write_segment(tmp_path, "t-1", 0, [batch(0, 2)])
    for option in ("startingOffsets", "startingOffsetsByTimestamp"):
        stream = reader(tmp_path, **{option: '{"t": {"0": 1}}'})
        with pytest.raises(AnalysisError, match=f"{option}: .* lacks t-1"):
            stream.initialOffset()


def test_a_query_of_what_is_committed_starts_at_the_first_open_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL_SEGMENTS, clock=ManualClock(START_MS))
    producers = Transactions(log)
    producers.write(1, 5)
    producers.end(1, ControlType.COMMIT)
    opened = producers.write(2, 3)
    later = {"startingTimestamp": str(START_MS + 3), "startingOffsetsByTimestampStrategy": "latest"}
    for options in ({}, {**later, "startingTimestamp": str(START_MS + 9)}):
        stream = reader(tmp_path, isolationLevel="read_committed", **options)
        start = stream.initialOffset()
        assert start == {"topic": {"0": 6}}
        assert stream.latestOffset(start, ReadAllAvailable()) == start
    assert reader(tmp_path, **later).initialOffset() == {"topic": {"0": 3}}
    producers.end(2, ControlType.COMMIT)
    assert offsets(stream, start, stream.latestOffset(start, ReadAllAvailable())) == opened
    log.close()


@pytest.mark.parametrize("asks_for_the_start_first", [True, False])
def test_the_reader_of_spark_4_1_limits_every_batch_and_never_goes_back(
    tmp_path: Path, asks_for_the_start_first: bool
) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 100)])
    stream = old_reader(tmp_path, **EARLIEST, maxOffsetsPerTrigger="40")
    ends = [stream.initialOffset() if asks_for_the_start_first else stream.latestOffset()]
    start = stream.initialOffset()
    ends += [stream.latestOffset() for _ in range(4)]
    expected = [0, 40, 80, 100, 100] if asks_for_the_start_first else [40, 80, 100, 100, 100]
    assert [end["t"]["0"] for end in ends] == expected
    assert start == {"t": {"0": 0}}
    assert offsets(stream, start, {"t": {"0": 40}}) == list(range(40))
    restarted = old_reader(tmp_path, maxOffsetsPerTrigger="40")
    restarted.partitions({"t": {"0": 0}}, {"t": {"0": 40}})
    assert restarted.latestOffset() == {"t": {"0": 80}}
