"""The inventory, held against a count of what was written to logs of every kind."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from analytics.analyses import growth, inventory
from analytics.html.summary import summary
from tests.integration.varied_data import DRAINED_END, EMPTY, TRIMMED_AT, Varied, varied
from tests.integration.varied_logs import DAY, HOUR, MONDAY, WrittenBatch

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine

NOW = datetime.fromtimestamp(MONDAY / 1000, UTC) + timedelta(days=5)
GROWTH_SCHEMA = "log_dir string, bytes bigint, first_timestamp timestamp, last_timestamp timestamp"


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Varied:
    return varied(spark, tmp_path_factory.getbasetemp() / "varied")


def in_milliseconds(table: DataFrame) -> list[dict[str, Any]]:
    """Rows with their moments as numbers, which no time zone changes."""
    moments = [name for name, kind in table.dtypes if kind == "timestamp"]
    shown = table.select("*", *(f.unix_millis(name).alias(f"{name}_ms") for name in moments))
    return [row.asDict() for row in shown.collect()]


def records_in(batches: list[WrittenBatch]) -> int:
    return sum(len(one.records) for one in batches)


def span(batches: list[WrittenBatch]) -> tuple[int | None, int | None]:
    """From the first record of a batch to the latest of any: what headers tell."""
    timed = [one for one in batches if one.marker is None and one.last_time is not None]
    first = [one.records[0].timestamp or 0 for one in timed]
    return min(first, default=None), max((one.last_time or 0 for one in timed), default=None)


def hourly(amount: int, first: int | None, last: int | None) -> Any:
    if first is None or last is None or first == last:
        return None
    return pytest.approx(amount * HOUR / (last - first))


def test_partitions_hold_what_was_written_to_each_replica(written: Varied) -> None:
    by_replica = defaultdict(list)
    for one in written.batches:
        by_replica[one.log_dir, one.topic, one.partition].append(one)
    rows = in_milliseconds(written.tables.inventory)
    found = {(row["log_dir"], row["topic"], row["partition"]): row for row in rows}
    empty = {(written.directories[0], topic, number) for topic, number in EMPTY}
    assert len(rows) == len(found)
    assert found.keys() == by_replica.keys() | empty
    for place, batches in by_replica.items():
        row, (first, last) = found[place], span(batches)
        assert row["records"] == records_in(batches), place
        assert row["bytes"] == sum(one.bytes for one in batches)
        assert row["batches"] == len(batches)
        assert row["segments"] == len({one.segment for one in batches})
        assert row["last_offset"] == batches[-1].last_offset
        assert (row["first_timestamp_ms"], row["last_timestamp_ms"]) == (first, last)
        assert row["records_per_hour"] == hourly(records_in(batches), first, last)
        assert row["bytes_per_hour"] == hourly(row["bytes"], first, last)
    for place in empty:
        row = found[place]
        assert (row["records"], row["bytes"], row["batches"], row["segments"]) == (0, 0, 0, 1)
        assert (row["last_offset"], row["records_per_hour"]) == (None, None)
    starts = {place[1]: row["log_start_offset"] for place, row in found.items()}
    assert (starts["trimmed"], starts["drained"]) == (TRIMMED_AT, DRAINED_END)


def test_topics_count_each_partition_once_whatever_its_replicas(written: Varied) -> None:
    by_topic = defaultdict(list)
    for one in written.once:
        by_topic[one.topic].append(one)
    rows = {
        row["topic"]: row for row in in_milliseconds(inventory.topics(written.tables.inventory))
    }
    assert rows.keys() == by_topic.keys() | {"drained"}
    for topic, batches in by_topic.items():
        row, (first, last) = rows[topic], span(batches)
        assert row["records"] == records_in(batches), topic
        assert row["bytes"] == sum(one.bytes for one in batches)
        assert row["records_per_hour"] == hourly(records_in(batches), first, last)
        assert row["bytes_per_hour"] == hourly(row["bytes"], first, last)
    assert (rows["orders"]["partitions"], rows["orders"]["replicas"]) == (3, 4)
    assert (rows["drained"]["records"], rows["drained"]["segments"]) == (0, 1)


def test_traffic_is_by_the_hour_of_a_batchs_last_record(written: Varied) -> None:
    expected: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for one in written.data:
        if one.last_time is not None:
            hour = expected[one.topic, one.last_time - one.last_time % HOUR]
            hour[0] += len(one.records)
            hour[1] += one.bytes
    rows = in_milliseconds(inventory.traffic(written.tables.batches))
    found = {(row["topic"], row["hour_ms"]): [row["records"], row["bytes"]] for row in rows}
    assert found == dict(expected)


def grown(batches: list[WrittenBatch], log_dir: str) -> float:
    """Bytes a day in the last seven days of a directory's data."""
    timed = [(one, one.last_time) for one in batches if one.log_dir == log_dir]
    known = [(one, at) for one, at in timed if at is not None]
    newest = max(at for _, at in known)
    firsts = [one.records[0].timestamp if one.records else at for one, at in known]
    reach = min(newest - min(first or 0 for first in firsts), 7 * DAY)
    recent = sum(one.bytes for one, at in known if at >= newest - 7 * DAY)
    return recent * DAY / reach


def test_growth_is_that_of_the_last_days_and_a_shared_disk_is_filled_by_all(
    written: Varied,
) -> None:
    here, there = written.directories
    table = written.tables.replicas
    alone = {
        row.log_dir: row for row in growth.disk_forecast(table, {here: 10**6}, now=NOW).collect()
    }
    assert alone[here].bytes_per_day == pytest.approx(grown(written.batches, here))
    assert alone[there].bytes_per_day == pytest.approx(grown(written.batches, there))
    assert alone[here].days_left == pytest.approx(10**6 / grown(written.batches, here))
    assert alone[here].full_on == (NOW + timedelta(days=int(alone[here].days_left))).date()
    assert (alone[there].days_left, alone[there].full_on) == (None, None)
    free, disk = {here: 10**6, there: 10**6}, {here: "disk", there: "disk"}
    shared = growth.disk_forecast(table, free, disk, now=NOW).collect()
    both = sum(grown(written.batches, one) for one in written.directories)
    assert [row.days_left for row in shared] == [pytest.approx(10**6 / both)] * 2


def test_partitions_growth_adds_up_to_that_of_their_directory(written: Varied) -> None:
    sums: dict[str, float] = defaultdict(float)
    for row in written.tables.inventory.collect():
        sums[row.log_dir] += row.bytes_per_day or 0
    for log_dir in written.directories:
        assert sums[log_dir] == pytest.approx(grown(written.batches, log_dir))


def test_a_disk_is_full_when_its_recent_growth_has_used_what_is_free(spark: SparkSession) -> None:
    def ago(days: float) -> datetime:
        return NOW - timedelta(days=days)

    rows = [
        ("/a", 10**9, ago(100), ago(100)),  # too long ago to count
        ("/a", 500, ago(2), ago(2)),
        ("/a", 200, ago(0), NOW + timedelta(days=9000)),  # a clock that is wrong
        ("/b", 500, ago(0), ago(0)),  # a moment has no rate
        ("/c", 500, ago(2), ago(1)),
        ("/c", 500, None, None),  # of a format without timestamps
    ]
    table = spark.createDataFrame(rows, GROWTH_SCHEMA)
    free = {"/a": 1000, "/b": 10, "/c": 2500}
    found = {row.log_dir: row for row in growth.disk_forecast(table, free, now=NOW).collect()}
    assert found["/a"].bytes_per_day == pytest.approx(100)
    assert found["/a"].full_on == (NOW + timedelta(days=10)).date()
    assert found["/b"].full_on is None
    assert (found["/c"].bytes_per_day, found["/c"].days_left) == (500, 5)


def test_what_came_within_seconds_tells_of_no_day(spark: SparkSession) -> None:
    soon = NOW - timedelta(hours=5)
    rows = [("/a", 10**7, soon, soon + timedelta(seconds=1))]
    table = spark.createDataFrame(rows, GROWTH_SCHEMA)
    [row] = growth.disk_forecast(table, {"/a": 10**9}, now=NOW).collect()
    assert (row.bytes_per_day, row.days_left, row.full_on) == (None, None, None)
    assert row.is_growing


def test_a_clock_that_was_wrong_hides_no_growth(spark: SparkSession) -> None:
    odd = [datetime(2100, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
    days = [NOW - timedelta(days=number) for number in range(3)]
    rows = [("/a", 100, moment, moment) for moment in (*odd, *days)]
    table = spark.createDataFrame(rows, GROWTH_SCHEMA)
    [row] = growth.disk_forecast(table, {"/a": 1500}, now=NOW).collect()
    assert (row.bytes_per_day, row.days_left) == (150, 10)


def test_a_directory_with_nothing_new_no_longer_grows(spark: SparkSession) -> None:
    def days(ago: int) -> list[datetime]:
        return [NOW - timedelta(days=ago + number) for number in range(2)]

    rows = [("/old", 100, moment, moment) for moment in days(700)]
    rows += [("/new", 100, moment, moment) for moment in days(1)]
    table = spark.createDataFrame(rows, GROWTH_SCHEMA)
    free, disk = dict.fromkeys(("/old", "/new"), 1000), dict.fromkeys(("/old", "/new"), "disk")
    shared = {row.log_dir: row for row in growth.disk_forecast(table, free, disk, NOW).collect()}
    assert (shared["/new"].is_growing, shared["/old"].is_growing) == (True, False)
    assert shared["/old"].bytes_per_day == 200  # when it still grew
    assert shared["/new"].days_left == 5
    [alone] = growth.disk_forecast(table.where("log_dir = '/old'"), free, now=NOW).collect()
    assert (alone.days_left, alone.full_on) == (None, None)


def test_the_summary_counts_records_once_and_bytes_as_they_lie(written: Varied) -> None:
    rows = [row.asDict() for row in written.tables.inventory.collect()]
    text = summary({"partitions": rows})[0].text
    topics = len({one.topic for one in written.once}) + 1
    partitions = len({(one.topic, one.partition) for one in written.once}) + len(EMPTY)
    assert text.startswith(
        f"{topics} topics with {partitions} partitions ({partitions + 1} replicas) hold"
        f" {records_in(written.once):,} records in "
    )
