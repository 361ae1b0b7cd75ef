"""How fast logs grow, and when their disks will be full."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.moments import seconds_between

# A disk's future is judged by its recent past: the last days of its data, not its first ones.
RECENT_DAYS: Final = 7

_SECONDS_PER_DAY: Final = 86_400
_FAR_AWAY_DAYS: Final = 365_000


def recent(batches: DataFrame, now: datetime | None = None) -> DataFrame:
    """The batches of the last days of each log directory, and over how many seconds its data
    reaches, but at most those days. A timestamp that is still to come counts as now, and batches
    without one are of no day."""
    at = f.least(f.col("last_timestamp"), _now(now))
    timed = batches.where(f.col("last_timestamp").isNotNull()).withColumn("at", at)
    reaches = timed.groupBy("log_dir").agg(
        f.max("at").alias("newest"),
        f.least(f.min("first_timestamp"), f.min("at")).alias("oldest"),
    )
    timed = timed.join(f.broadcast(reaches), "log_dir")
    age = seconds_between(f.col("at"), f.col("newest"))
    reach = seconds_between(f.col("oldest"), f.col("newest"))
    longest = float(RECENT_DAYS * _SECONDS_PER_DAY)
    return timed.where(age <= longest).withColumn("seconds", f.least(reach, f.lit(longest)))


def bytes_per_day(recent: DataFrame, *columns: str) -> DataFrame:
    """Growth by whatever columns; absent where all that is known is of one moment."""
    day = f.lit(float(_SECONDS_PER_DAY)) / f.nullif(f.col("seconds"), f.lit(0.0))
    return recent.groupBy(*columns).agg(f.sum(f.col("bytes") * day).alias("bytes_per_day"))


def disk_forecast(
    batches: DataFrame,
    free_bytes: Mapping[str, int],
    disk_of: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> DataFrame:
    """For each log directory: its growth over the last days of its data and, where the free bytes
    of its disk are known, the day on which that is full if all log directories on it go on so.

    `free_bytes` are those of now; directories that `disk_of` does not name have disks of their
    own. Nothing is ever freed by retention here, so a log that has reached its retention will do
    better than this says.
    """
    grown = bytes_per_day(recent(batches, now), "log_dir")
    disk = f.coalesce(_looked_up(disk_of or {}, "string"), f.col("log_dir"))
    on_disk = Window.partitionBy(disk)
    days_left = f.col("free_bytes") / f.col("disk_bytes_per_day")
    is_near = f.col("days_left") < _FAR_AWAY_DAYS
    return (
        grown.withColumn("disk_bytes_per_day", f.sum("bytes_per_day").over(on_disk))
        .withColumn("free_bytes", _looked_up(free_bytes, "bigint"))
        .withColumn("days_left", days_left)
        .withColumn(
            "full_on", f.when(is_near, f.date_add(_now(now), f.col("days_left").cast("int")))
        )
    )


def _now(now: datetime | None) -> Column:
    return f.current_timestamp() if now is None else f.lit(now).cast("timestamp")


def _looked_up(values: Mapping[str, object], kind: str) -> Column:
    found = f.lit(None).cast(kind)
    for log_dir, value in values.items():
        found = f.when(f.col("log_dir") == log_dir, f.lit(value)).otherwise(found)
    return found.cast(kind)
