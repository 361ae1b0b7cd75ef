"""How fast logs grow, and when their disks will be full."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.moments import seconds_between
from analytics.timestamps import EARLIEST_CREDIBLE

# A disk's future is judged by its recent past: the last days of its data, not its first ones.
RECENT_DAYS: Final = 7
# What came within less may have come all at once.
SHORTEST_SECONDS: Final = 3600.0

_SECONDS_PER_DAY: Final = 86_400
_FAR_AWAY_DAYS: Final = 365_000


def recent(batches: DataFrame, now: datetime | None = None) -> DataFrame:
    """The batches of the last days of each log directory, and over how many seconds its data
    reaches, but at most those days; none if that is too short to tell of a day. Batches are of
    the time of their last record, or of the first where a clock was wrong about the last; where
    it was about both they are of no day."""
    first, last = (_past(name, now) for name in ("first_timestamp", "last_timestamp"))
    at = f.coalesce(last, first)
    timed = batches.withColumn("at", at).where(f.col("at").isNotNull())
    reaches = timed.groupBy("log_dir").agg(
        f.max("at").alias("newest"),
        f.least(f.min("at"), f.min(first)).alias("oldest"),
    )
    timed = timed.join(f.broadcast(reaches), "log_dir")
    age = seconds_between(f.col("at"), f.col("newest"))
    reach = seconds_between(f.col("oldest"), f.col("newest"))
    longest = float(RECENT_DAYS * _SECONDS_PER_DAY)
    seconds = f.when(reach >= SHORTEST_SECONDS, f.least(reach, f.lit(longest)))
    return timed.where(age <= longest).withColumn("seconds", seconds)


def bytes_per_day(recent: DataFrame, *columns: str) -> DataFrame:
    """Growth by whatever columns; absent where the data are of too short a time."""
    day = f.lit(float(_SECONDS_PER_DAY)) / f.col("seconds")
    return recent.groupBy(*columns).agg(f.sum(f.col("bytes") * day).alias("bytes_per_day"))


def disk_forecast(
    batches: DataFrame,
    free_bytes: Mapping[str, int],
    disk_of: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> DataFrame:
    """For each log directory: its growth over the last days of its data and, where the free bytes
    of its disk are known, the day on which that is full if all log directories on it go on so.
    Those that have had nothing new in as many days no longer grow.

    `free_bytes` are those of now; directories that `disk_of` does not name have disks of their
    own. Nothing is ever freed by retention here, so a log that has reached its retention will do
    better than this says.
    """
    lately = recent(batches, now)
    grown = bytes_per_day(lately, "log_dir", "newest")
    disk = f.coalesce(_looked_up(disk_of or {}, "string"), f.col("log_dir"))
    age = seconds_between(f.col("newest"), _now(now))
    still_grown = f.when(f.col("is_growing"), f.col("bytes_per_day"))
    on_disk = f.sum(still_grown).over(Window.partitionBy(disk))
    days_left = f.col("free_bytes") / f.nullif("disk_bytes_per_day", f.lit(0.0))
    is_near = f.col("days_left") < _FAR_AWAY_DAYS
    return (
        grown.withColumn("is_growing", age <= RECENT_DAYS * _SECONDS_PER_DAY)
        .withColumn("disk_bytes_per_day", on_disk)
        .withColumn("free_bytes", _looked_up(free_bytes, "bigint"))
        .withColumn("days_left", days_left)
        .withColumn(
            "full_on", f.when(is_near, f.date_add(_now(now), f.col("days_left").cast("int")))
        )
    )


def _past(name: str, now: datetime | None) -> Column:
    """A moment that has come, if a clock that is right can have shown it."""
    moment = f.col(name)
    return f.when(moment.between(f.lit(EARLIEST_CREDIBLE.replace(tzinfo=UTC)), _now(now)), moment)


def _now(now: datetime | None) -> Column:
    return f.current_timestamp() if now is None else f.lit(now).cast("timestamp")


def _looked_up(values: Mapping[str, object], kind: str) -> Column:
    found = f.lit(None).cast(kind)
    for log_dir, value in values.items():
        found = f.when(f.col("log_dir") == log_dir, f.lit(value)).otherwise(found)
    return found.cast(kind)
