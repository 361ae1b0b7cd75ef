"""When records came: runs of records without a pause, from headers and, where batches reach over a
pause, from the records in them."""

from datetime import UTC, datetime
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.batch_headers import is_data
from analytics.analyses.moments import seconds_between
from analytics.analyses.opened_batches import opened_batch
from analytics.timestamps import is_moment
from storage.records.batches import iter_records
from storage.records.errors import RecordDataError

MOST_OPENED: Final = 1000  # batches of a topic

_RUNS: Final = "array<struct<first_timestamp: timestamp, last_timestamp: timestamp>>"


def runs(batches: DataFrame, pause_seconds: float) -> DataFrame:
    """Per topic the times from a first record to a last one: those of a batch, or of its parts
    between pauses of more than so many seconds. The longest batches of each topic are opened for
    that, as many as can be in passing."""
    timed = batches.where(is_data() & f.col("first_timestamp").isNotNull())
    span = seconds_between(f.col("first_timestamp"), f.col("last_timestamp"))
    longest_first = Window.partitionBy("topic").orderBy(f.desc("span"), "segment", "position")
    ranked = timed.withColumn("span", span).withColumn("n", f.row_number().over(longest_first))
    is_opened = (f.col("span") > pause_seconds) & (f.col("n") <= MOST_OPENED)
    split = f.udf(_split, _RUNS, useArrow=False)
    whole = f.array(f.struct("first_timestamp", "last_timestamp"))
    parts = f.coalesce(split("segment", "position", "bytes", f.lit(pause_seconds)), whole)
    times = ["first_timestamp", "last_timestamp"]
    opened = ranked.where(is_opened).select("topic", f.inline(parts))
    return ranked.where(~is_opened).select("topic", *times).unionByName(opened)


def _split(
    segment: str, position: int, size: int, pause_seconds: float
) -> list[tuple[datetime, datetime]] | None:
    """The runs of a batch; None for one that is gone or broken."""
    batch = opened_batch(segment, position, size)
    if batch is None:
        return None
    try:
        times = sorted(one.timestamp for one in iter_records(batch) if is_moment(one.timestamp))
    except RecordDataError:
        return None
    found = [[at, at] for at in times[:1]]
    for at in times:
        if at - found[-1][1] > pause_seconds * 1000:
            found.append([at, at])
        found[-1][1] = at
    return [(_moment(first), _moment(last)) for first, last in found] or None


def _moment(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
