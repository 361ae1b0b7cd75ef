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

_TIMES: Final = ("first_timestamp", "last_timestamp")
_RUNS: Final = "array<struct<first_timestamp: timestamp, last_timestamp: timestamp>>"


def runs(batches: DataFrame, pause_seconds: float) -> DataFrame:
    """Per topic the times from a first record to a last one: those of a batch, or of its parts
    between pauses of more than so many seconds. The longest batches of each topic are opened for
    that, as many as can be in passing. Spark is asked at once whether there are any."""
    timed = batches.where(is_data() & f.col("first_timestamp").isNotNull())
    span = seconds_between(f.col("first_timestamp"), f.col("last_timestamp"))
    is_long = f.coalesce(span > pause_seconds, f.lit(False))
    short, long = (
        timed.where(~is_long).select("topic", *_TIMES),
        timed.where(is_long).withColumn("span", span),
    )
    # Most logs have none, for which to start Python workers takes longer than all else.
    if long.isEmpty():
        return short
    longest_first = Window.partitionBy("topic").orderBy(f.desc("span"), "segment", "position")
    is_opened = f.row_number().over(longest_first) <= MOST_OPENED
    ranked = long.withColumn("opened", f.when(is_opened, f.col("segment")))
    split = f.udf(_split, _RUNS, useArrow=False)
    parts = split("opened", "position", "bytes", f.lit(pause_seconds))
    whole = f.array(f.struct(*_TIMES))
    return short.unionByName(ranked.select("topic", f.inline(f.coalesce(parts, whole))))


def _split(
    segment: str | None, position: int, size: int, pause_seconds: float
) -> list[tuple[datetime, datetime]] | None:
    """The runs of a batch; None for one that is not to be opened, gone or broken."""
    batch = None if segment is None else opened_batch(segment, position, size)
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
