"""What each partition and topic holds, and how fast it grows.

All from the batch table and the list of logs: no record is opened. Batches are those of every
replica.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from analytics.analyses.batch_headers import is_data, record_count
from analytics.analyses.growth import bytes_per_day, recent
from analytics.analyses.moments import credible, seconds_between, utc_hour
from analytics.analyses.replicas import furthest

_PARTITION: Final = ("log_dir", "topic", "partition")
RATED: Final = ("rated_from", "rated_to")  # the span that a partition's rates are over
LISTING_SCHEMA: Final = (
    "log_dir string, topic string, partition int, segments bigint,"
    " log_start_offset bigint, last_base_offset bigint"
)


def partitions(batches: DataFrame, listing: DataFrame) -> DataFrame:
    """One row per log directory, topic and partition, in no order, empty ones included.

    Records are what is stored: control batches (the markers of transactions) are none, and a
    compacted batch counts the records that are left in it. Bytes and offsets are the log's own.
    Rates are over the whole span of a partition's time, that of clocks which were wrong left out
    (`RATED`), and absent where that is no time at all; growth is that of the last days of its log
    directory.
    """
    held = batches.groupBy(*_PARTITION).agg(
        f.sum(_records()).alias("records"),
        f.sum("bytes").alias("bytes"),
        f.count("*").alias("batches"),
        f.min("base_offset").alias("first_offset"),
        f.max("last_offset").alias("last_offset"),
        f.min(f.when(is_data(), f.col("first_timestamp"))).alias("first_timestamp"),
        f.max(f.when(is_data(), f.col("last_timestamp"))).alias("last_timestamp"),
        _rated(f.min, "first_timestamp").alias("rated_from"),
        _rated(f.max, "last_timestamp").alias("rated_to"),
    )
    growth = bytes_per_day(recent(batches), *_PARTITION).withColumn("has_grown", f.lit(True))
    grown = f.when(f.col("has_grown"), f.col("bytes_per_day")).otherwise(0.0)
    joined = listing.join(held, list(_PARTITION), "left").join(growth, list(_PARTITION), "left")
    return joined.select(
        *_PARTITION,
        *(f.coalesce(name, f.lit(0)).alias(name) for name in ("records", "bytes", "segments")),
        f.coalesce("batches", f.lit(0)).alias("batches"),
        "log_start_offset",
        "first_offset",
        "last_offset",
        "first_timestamp",
        "last_timestamp",
        *_hourly_rates(),
        grown.alias("bytes_per_day"),
        *RATED,
    )


def topics(partitions: DataFrame) -> DataFrame:
    """One row per topic, from the table of partitions; of replicas the one that reaches furthest
    counts."""
    each = furthest(partitions)
    replicas = partitions.groupBy("topic").agg(f.count("*").alias("replicas"))
    summed = each.groupBy("topic").agg(
        f.count("*").alias("partitions"),
        *(f.sum(name).alias(name) for name in ("records", "bytes", "segments", "batches")),
        f.min("first_timestamp").alias("first_timestamp"),
        f.max("last_timestamp").alias("last_timestamp"),
        f.min("rated_from").alias("rated_from"),
        f.max("rated_to").alias("rated_to"),
        f.sum("bytes_per_day").alias("bytes_per_day"),
    )
    return summed.join(replicas, "topic").select(
        "topic",
        "partitions",
        "replicas",
        "records",
        "bytes",
        "segments",
        "batches",
        "first_timestamp",
        "last_timestamp",
        *_hourly_rates(),
        "bytes_per_day",
    )


def traffic(batches: DataFrame) -> DataFrame:
    """Records and bytes per topic and hour; a batch belongs to the hour of its last record."""
    return (
        batches.where(is_data() & f.col("last_timestamp").isNotNull())
        .groupBy("topic", utc_hour(f.col("last_timestamp")).alias("hour"))
        .agg(f.sum(record_count()).alias("records"), f.sum("bytes").alias("bytes"))
    )


def _records() -> Column:
    return f.when(is_data(), record_count()).otherwise(0)


def _rated(extreme: Callable[[Column], Column], name: str) -> Column:
    """Of the moments that clocks which were right have shown, if there are any."""
    moment = f.when(is_data(), f.col(name))
    return f.coalesce(extreme(f.when(credible(moment), moment)), extreme(moment))


def _hourly_rates() -> list[Column]:
    hours = seconds_between(*map(f.col, RATED)) / 3600
    some = f.when(hours > 0, hours)
    return [(f.col(name) / some).alias(f"{name}_per_hour") for name in ("records", "bytes")]
