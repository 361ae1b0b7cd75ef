"""Consumer groups, from what `__consumer_offsets` remembers: commits, lag over time, stalls."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from broker.groups.record_formats import OffsetKey, decode_key, decode_offset_value
from broker.versioned_records import MalformedRecordError

OFFSETS_TOPIC: Final = "__consumer_offsets"
STALLED_AFTER_SECONDS: Final = 3600.0

_PARTITION: Final = ("group", "topic", "partition")
_COMMIT: Final = (
    "struct<group: string, topic: string, partition: int, committed: bigint,"
    " committed_ms: bigint, metadata: string>"
)


def commits(records: DataFrame) -> DataFrame:
    """Every commit that the log still holds, deletions (with no offset) included.

    Records that are none of a committed offset, or that nobody can read, are passed over.
    """
    commit = f.udf(_commit, _COMMIT, useArrow=False)("key", "value")
    read = records.where(f.col("topic") == OFFSETS_TOPIC).select(
        f.col("offset").alias("log_offset"), "timestamp", commit.alias("commit")
    )
    committed_at = f.coalesce(f.timestamp_millis("commit.committed_ms"), "timestamp")
    return read.where(f.col("commit").isNotNull()).select(
        "log_offset",
        "commit.group",
        "commit.topic",
        "commit.partition",
        "commit.committed",
        committed_at.alias("committed_at"),
        "commit.metadata",
        f.col("commit.committed").isNull().alias("is_deleted"),
    )


def committed_offsets(commits: DataFrame) -> DataFrame:
    """What is committed now: the last word on each group and partition, if it is no deletion."""
    last = f.max_by(f.struct("committed", "committed_at", "metadata", "is_deleted"), "log_offset")
    latest = commits.groupBy(*_PARTITION).agg(last.alias("last"))
    return latest.where(~f.col("last.is_deleted")).select(
        *_PARTITION, "last.committed", "last.committed_at", "last.metadata"
    )


def lag_now(committed: DataFrame, batches: DataFrame) -> DataFrame:
    """How far each group is behind the end of each partition's log; partitions that are not
    among the logs have no end, and so no lag."""
    ends = batches.groupBy("topic", "partition").agg(
        (f.max("last_offset") + 1).alias("log_end"), f.max("last_timestamp").alias("newest")
    )
    lag = f.greatest(f.col("log_end") - f.col("committed"), f.lit(0))
    return committed.join(ends, ["topic", "partition"], "left").select(
        *_PARTITION, "committed", "committed_at", "log_end", "newest", lag.alias("lag")
    )


def lag_over_time(commits: DataFrame, batches: DataFrame) -> DataFrame:
    """The lag at the moment of each commit: the end of the log was then behind the last batch
    whose records are no younger."""
    ends = batches.where(~f.col("is_control") & f.col("last_timestamp").isNotNull()).select(
        "topic",
        "partition",
        f.col("last_timestamp").alias("at"),
        (f.col("last_offset") + 1).alias("log_end"),
    )
    committed = commits.where(~f.col("is_deleted")).select(
        *_PARTITION, f.col("committed_at").alias("at"), "committed"
    )
    until_then = (
        Window.partitionBy("topic", "partition")
        .orderBy("at")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    known = ends.unionByName(committed, allowMissingColumns=True)
    known = known.withColumn("log_end", f.max("log_end").over(until_then))
    lag = f.greatest(f.col("log_end") - f.col("committed"), f.lit(0))
    return known.where(f.col("group").isNotNull()).select(
        *_PARTITION, "at", "committed", "log_end", lag.alias("lag")
    )


def stalled_groups(lags: DataFrame, after_seconds: float = STALLED_AFTER_SECONDS) -> DataFrame:
    """Partitions with records that their group has not asked for since long before the newest
    record came: the group is stuck, or gone."""
    silent = _seconds(f.col("newest")) - _seconds(f.col("committed_at"))
    return (
        lags.withColumn("silent_seconds", silent)
        .where((f.col("lag") > 0) & (f.col("silent_seconds") > after_seconds))
        .select(*_PARTITION, "lag", "committed_at", "newest", "silent_seconds")
    )


def _seconds(moment: Column) -> Column:
    return f.unix_millis(moment) / 1000


def _commit(
    key: bytes | None, value: bytes | None
) -> tuple[str, str, int, int | None, int | None, str | None] | None:
    try:
        about = decode_key(bytes(key or b""))
        committed = None if value is None else decode_offset_value(bytes(value))
    except MalformedRecordError:
        return None
    if not isinstance(about, OffsetKey):
        return None
    place = (about.group, about.topic, about.partition)
    if committed is None:
        return (*place, None, None, None)
    return (*place, committed.offset, committed.commit_timestamp, committed.metadata)
