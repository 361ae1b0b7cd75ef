"""Consumer groups, from what `__consumer_offsets` remembers: commits, lag over time, stalls."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.batch_headers import is_data
from analytics.analyses.moments import known, seconds_between
from analytics.analyses.producers import COMMITTED, transactional_batches
from analytics.timestamps import is_moment
from broker.groups.record_formats import OffsetKey, decode_key, decode_offset_value
from broker.versioned_records import MalformedRecordError

OFFSETS_TOPIC: Final = "__consumer_offsets"
STALLED_AFTER_SECONDS: Final = 3600.0

_PARTITION: Final = ("group", "topic", "partition")
_COMMIT: Final = (
    "struct<group: string, topic: string, partition: int, committed: bigint,"
    " committed_ms: bigint, metadata: string>"
)


def commits(records: DataFrame, batches: DataFrame) -> DataFrame:
    """Every commit that the log still holds, deletions (with no offset) included. A negative
    offset is none, as it is to clients; a time that no calendar has is that of the record.

    `records` are uncommitted ones: a group coordinator goes by all commits but those of
    transactions that were aborted or have no end yet, whatever else those hold up. Records that
    are none of a committed offset, or that nobody can read, are passed over.
    """
    decided = _without_undecided(records.where(f.col("topic") == OFFSETS_TOPIC), batches)
    commit = f.udf(_commit, _COMMIT, useArrow=False)("key", "value")
    read = decided.select(f.col("offset").alias("log_offset"), "timestamp", commit.alias("commit"))
    committed_at = f.coalesce(f.timestamp_millis("commit.committed_ms"), known(f.col("timestamp")))
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


def _without_undecided(records: DataFrame, batches: DataFrame) -> DataFrame:
    of_commits = transactional_batches(batches.where(f.col("topic") == OFFSETS_TOPIC))
    undecided = of_commits.where(f.col("outcome") != COMMITTED).select(
        f.col("partition").alias("in_partition"), "first_offset", "last_offset"
    )
    is_in = (f.col("partition") == f.col("in_partition")) & f.col("offset").between(
        f.col("first_offset"), f.col("last_offset")
    )
    return records.join(f.broadcast(undecided), is_in, "left_anti")


def committed_offsets(commits: DataFrame) -> DataFrame:
    """What is committed now: the last word on each group and partition, if it is no deletion,
    and since when (moved_at), for consumers that stand still may go on to commit."""
    in_order = Window.partitionBy(*_PARTITION).orderBy("log_offset")
    is_first = f.row_number().over(in_order) == 1
    has_moved = ~f.col("committed").eqNullSafe(f.lag("committed").over(in_order)) | is_first
    moved = commits.withColumn("moved_at", f.when(has_moved, f.col("committed_at")))
    moved_at = f.max_by("moved_at", f.when(f.col("moved_at").isNotNull(), f.col("log_offset")))
    last = f.max_by(f.struct("committed", "committed_at", "metadata", "is_deleted"), "log_offset")
    latest = moved.groupBy(*_PARTITION).agg(last.alias("last"), moved_at.alias("moved_at"))
    return latest.where(~f.col("last.is_deleted")).select(
        *_PARTITION, "last.committed", "last.committed_at", "moved_at", "last.metadata"
    )


def lag_now(committed: DataFrame, batches: DataFrame, listing: DataFrame) -> DataFrame:
    """How far each group is behind the end of each partition's log; partitions that are not
    among the logs have no end, and so no lag."""
    written = batches.groupBy("topic", "partition").agg(
        f.try_add(f.max("last_offset"), f.lit(1)).alias("log_end"),
        f.max(f.when(is_data(), f.col("last_offset"))).alias("last_record_offset"),
        f.max(f.when(is_data(), f.col("last_timestamp"))).alias("newest"),
    )
    # Where retention has left nothing, the name of the last segment tells the end.
    listed = listing.groupBy("topic", "partition").agg(f.max("last_base_offset").alias("least_end"))
    ends = listed.join(written, ["topic", "partition"], "full").withColumn(
        "log_end", f.greatest("log_end", "least_end")
    )
    return committed.join(ends, ["topic", "partition"], "left").select(
        *_PARTITION,
        "committed",
        "committed_at",
        "moved_at",
        "log_end",
        "last_record_offset",
        "newest",
        _lag().alias("lag"),
    )


def lag_over_time(commits: DataFrame, batches: DataFrame) -> DataFrame:
    """The lag at the moment of each commit: the end of the log was then behind the last batch
    that had come. A batch came no earlier than the newest record before it says."""
    committed = commits.where(~f.col("is_deleted")).select(
        *_PARTITION, f.col("committed_at").alias("at"), "committed"
    )
    before = (
        Window.partitionBy("topic", "partition")
        .orderBy("last_offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    followed = committed.select("topic", "partition").distinct()
    ends = batches.join(followed, ["topic", "partition"], "left_semi").select(
        "topic",
        "partition",
        f.max("last_timestamp").over(before).alias("at"),
        f.try_add("last_offset", f.lit(1)).alias("log_end"),
    )
    until_then = (
        Window.partitionBy("topic", "partition")
        .orderBy("at")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    known = ends.where(f.col("at").isNotNull()).unionByName(committed, allowMissingColumns=True)
    known = known.withColumn("log_end", f.max("log_end").over(until_then))
    return known.where(f.col("group").isNotNull()).select(
        *_PARTITION, "at", "committed", "log_end", _lag().alias("lag")
    )


def stalled_groups(
    lags: DataFrame, batches: DataFrame, after_seconds: float = STALLED_AFTER_SECONDS
) -> DataFrame:
    """Partitions with records that their group has not got to, and whose committed offset has
    stood still for long before the last moment that these logs know of: the group is stuck, or
    gone. A lag of nothing but the markers of transactions is none."""
    moment = f.when(f.col("last_timestamp") <= f.current_timestamp(), f.col("last_timestamp"))
    last_moment = batches.agg(f.max(moment).alias("last_moment"))
    still = seconds_between(f.col("moved_at"), f.col("last_moment"))
    has_unread = (f.col("lag") > 0) & (f.col("last_record_offset") >= f.col("committed"))
    return (
        lags.where(has_unread)
        .crossJoin(f.broadcast(last_moment))
        .withColumn("silent_seconds", still)
        .where(f.col("silent_seconds") > after_seconds)
        .select(
            *_PARTITION, "lag", "committed", "moved_at", "committed_at", "newest", "silent_seconds"
        )
    )


def _lag() -> Column:
    """None where the end of the log is not known, or no number can be; a log that was cut is not
    read ahead."""
    behind = f.try_subtract("log_end", "committed")
    return f.when(behind < 0, 0).otherwise(behind)


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
    offset = committed.offset if committed.offset >= 0 else None
    at = committed.commit_timestamp if is_moment(committed.commit_timestamp) else None
    return (*place, offset, at, committed.metadata)
