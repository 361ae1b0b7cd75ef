"""What each partition and topic holds, how fast it grows, and when its disk will be full.

All from the batch table: no record is opened.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

# A disk's future is judged by its recent past: the last days of its data, not its first ones.
RECENT_DAYS: Final = 7

_SECONDS_PER_DAY: Final = 86_400
_PARTITION: Final = ("log_dir", "topic", "partition")


def partitions(batches: DataFrame) -> DataFrame:
    """One row per log directory, topic and partition, in no order.

    Records are what consumers see: control batches (the markers of transactions) are none, and a
    compacted batch counts the records that are left in it. Bytes and offsets are the log's own.
    """
    return batches.groupBy(*_PARTITION).agg(
        *_holdings(),
        f.min("base_offset").alias("first_offset"),
        f.max("last_offset").alias("last_offset"),
        *_time_span(),
    )


def topics(batches: DataFrame) -> DataFrame:
    """One row per topic, over all log directories."""
    return batches.groupBy("topic").agg(
        f.countDistinct("partition").alias("partitions"),
        *_holdings(),
        *_time_span(),
        *_hourly_rates(),
    )


def traffic(batches: DataFrame) -> DataFrame:
    """Records and bytes per topic and hour; a batch belongs to the hour of its last record."""
    return (
        batches.where(_is_data() & f.col("last_timestamp").isNotNull())
        .groupBy("topic", f.date_trunc("hour", "last_timestamp").alias("hour"))
        .agg(f.sum("record_count").alias("records"), f.sum("bytes").alias("bytes"))
    )


def disk_forecast(batches: DataFrame, free_bytes: Mapping[str, int]) -> DataFrame:
    """For each log directory whose free bytes are known: its growth over the last days of its
    data, and the day on which it is full if that goes on. Nothing is ever freed by retention
    here, so a log that has reached its retention will do better than this says."""
    in_directory = Window.partitionBy("log_dir")
    newest = f.max("last_timestamp").over(in_directory)
    recent = batches.where(_is_data()).withColumn("newest", newest)
    recent = recent.where(
        f.col("last_timestamp") >= f.col("newest") - f.expr(f"INTERVAL {RECENT_DAYS} DAYS")
    )
    grown = recent.groupBy("log_dir").agg(
        f.sum("bytes").alias("recent_bytes"),
        f.max("newest").alias("newest"),
        _seconds_between(f.min("last_timestamp"), f.max("last_timestamp")).alias("seconds"),
    )
    per_day = f.col("recent_bytes") * _SECONDS_PER_DAY / f.nullif(f.col("seconds"), f.lit(0))
    free = _looked_up(free_bytes, "log_dir")
    days_left = f.col("free_bytes") / f.col("bytes_per_day")
    return (
        grown.withColumn("bytes_per_day", per_day.cast("double"))
        .withColumn("free_bytes", free)
        .withColumn("days_left", days_left)
        .withColumn(
            "full_on",
            f.when(f.col("days_left") < 365_000, f.date_add("newest", days_left.cast("int"))),
        )
        .select("log_dir", "recent_bytes", "bytes_per_day", "free_bytes", "days_left", "full_on")
    )


def _looked_up(values: Mapping[str, int], column: str) -> Column:
    found = f.lit(None).cast("bigint")
    for key, value in values.items():
        found = f.when(f.col(column) == key, f.lit(value)).otherwise(found)
    return found.cast("bigint")


def _is_data() -> Column:
    return ~f.col("is_control")


def _holdings() -> list[Column]:
    return [
        f.coalesce(f.sum(f.when(_is_data(), f.col("record_count"))), f.lit(0)).alias("records"),
        f.sum("bytes").alias("bytes"),
        f.countDistinct("segment").alias("segments"),
        f.count("*").alias("batches"),
    ]


def _time_span() -> list[Column]:
    return [
        f.min(f.when(_is_data(), f.col("first_timestamp"))).alias("first_timestamp"),
        f.max(f.when(_is_data(), f.col("last_timestamp"))).alias("last_timestamp"),
    ]


def _hourly_rates() -> list[Column]:
    """Over the whole span of a topic's time; none where that is no time at all."""
    first = f.min(f.when(_is_data(), f.col("first_timestamp")))
    last = f.max(f.when(_is_data(), f.col("last_timestamp")))
    hours = f.nullif(_seconds_between(first, last) / 3600, f.lit(0.0))
    records = f.sum(f.when(_is_data(), f.col("record_count")))
    return [
        (records / hours).alias("records_per_hour"),
        (f.sum("bytes") / hours).alias("bytes_per_hour"),
    ]


def _seconds_between(first: Column, last: Column) -> Column:
    return (f.unix_millis(last) - f.unix_millis(first)) / 1000
