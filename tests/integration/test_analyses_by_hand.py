"""The analyses on small tables whose answers can be worked out by hand."""

from datetime import datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from analytics.analyses import consumers, keys, times

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine

NOON = datetime(2020, 1, 2, 12)


def test_a_gap_is_a_pause_far_longer_than_usual(spark: SparkSession) -> None:
    seconds = [0, 10, 20, 30, 40, 1040, 1050, 1060]
    rows = [
        ("t", False, NOON + timedelta(seconds=one), NOON + timedelta(seconds=one + 1), "gone", 0, 9)
        for one in seconds
    ]
    schema = (
        "topic string, is_control boolean, first_timestamp timestamp, last_timestamp timestamp,"
        " segment string, position bigint, bytes int"
    )
    [gap] = times.traffic_gaps(spark.createDataFrame(rows, schema)).collect()
    assert gap.gap_start == NOON + timedelta(seconds=41)
    assert gap.seconds == 999
    assert gap.usual_seconds == 9


def test_skew_is_the_fullest_partition_against_the_mean(spark: SparkSession) -> None:
    rows = [("t", number % 3 if number < 6 else 1, 10, 90) for number in range(12)]
    listed = spark.range(3).selectExpr("'t' AS topic", "CAST(id AS int) AS partition")
    schema = "topic string, partition int, key_bytes int, value_bytes int"
    [row] = keys.partition_skew(spark.createDataFrame(rows, schema), listed).collect()
    assert (row.fullest_partition, row.most_records, row.mean_records) == (1, 8, 4)
    assert (row.records_skew, row.bytes_skew) == (2, 2)


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_lag_over_time_is_judged_by_the_end_of_the_log_at_that_time(spark: SparkSession) -> None:
    written = [("t", 0, False, 10 * one + 9, at(10 * one)) for one in range(4)]
    log = spark.createDataFrame(
        written,
        "topic string, partition int, is_control boolean, last_offset bigint,"
        " last_timestamp timestamp",
    )
    committed = [
        (0, "g", "t", 0, 5, at(1), "", False),
        (1, "g", "t", 0, 20, at(15), "", False),
        (2, "g", "t", 0, None, at(16), None, True),
        (3, "g", "t", 0, 20, at(35), "", False),
    ]
    commits = spark.createDataFrame(
        committed,
        "log_offset bigint, group string, topic string, partition int, committed bigint,"
        " committed_at timestamp, metadata string, is_deleted boolean",
    )
    listed = spark.createDataFrame(
        [("t", 0, 0)], "topic string, partition int, last_base_offset int"
    )
    lags = consumers.lag_over_time(commits, log).orderBy("at").collect()
    assert [(row.at, row.lag) for row in lags] == [(at(1), 5), (at(15), 0), (at(35), 20)]
    now = consumers.lag_now(consumers.committed_offsets(commits), log, listed)
    assert [(row.committed, row.log_end, row.lag) for row in now.collect()] == [(20, 40, 20)]


def test_a_group_that_has_long_stood_still_before_unread_records_is_stalled(
    spark: SparkSession,
) -> None:
    rows = [
        ("gone", "t", 0, 5, at(0), at(0), 40, 39, at(20), 35),
        ("stuck", "t", 0, 5, at(170), at(0), 40, 39, at(180), 35),
        ("slow", "t", 0, 5, at(170), at(170), 40, 39, at(180), 35),
        ("done", "t", 0, 40, at(0), at(0), 40, 39, at(180), 0),
        ("at a marker", "t", 0, 40, at(0), at(0), 41, 39, at(180), 1),
    ]
    lags = spark.createDataFrame(
        rows,
        "group string, topic string, partition int, committed bigint, committed_at timestamp,"
        " moved_at timestamp, log_end bigint, last_record_offset bigint, newest timestamp,"
        " lag bigint",
    )
    log = spark.createDataFrame([(at(180),), (None,)], "last_timestamp timestamp")
    found = consumers.stalled_groups(lags, log).collect()
    assert {(row.group, row.silent_seconds) for row in found} == {
        ("gone", 180 * 60),
        ("stuck", 180 * 60),
    }
