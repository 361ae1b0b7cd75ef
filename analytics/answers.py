"""Has analyses answered by Spark, several at once: as rows for a report, as Parquet tables.

Owns the shape in which answers leave Spark. An answer that fits a report leaves once, and its
table is written from that; of a larger one, which Spark writes, the largest rows leave, and what
charts and sentences need of all.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.errors import AnalysisError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from analytics.suite import Analysis
    from analytics.tables import Tables

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Answer:
    """`rows` in the order in which they are read; of a very long answer the largest ones. The
    digest stands for all `total` rows, in charts and in sentences: it is the rows themselves
    where none is missing."""

    rows: Rows
    total: int
    digest: Rows

    @staticmethod
    def of(rows: Rows) -> "Answer":
        """One of which nothing is missing."""
        return Answer(rows, len(rows), rows)


MOST_ROWS: Final = 50_000

# Most of a small answer's time is Spark's planning, on one core.
_AT_ONCE: Final = 4
_TABLE_FILE: Final = "part-00000.parquet"


def answers(
    analyses: Sequence["Analysis"], tables: "Tables", folder: Path | None
) -> Iterator[tuple["Analysis", Answer]]:
    """Each analysis with its answer, in order; its table, whole, goes into the folder. What
    has not begun when one fails, or when the caller has had enough, does not begin."""
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        running = [pool.submit(_answer, one, tables, folder) for one in analyses]
        for one, future in zip(analyses, running, strict=True):
            yield one, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _answer(one: "Analysis", tables: "Tables", folder: Path | None) -> Answer:
    table = one.build(tables)
    in_order = table.orderBy(*one.order)
    if one.is_never_cut:  # Spark sorts a whole table by way of a sample of it
        first = table.toArrow().sort_by([(name, "ascending") for name in one.order])
    else:
        first = in_order.limit(MOST_ROWS + 1).toArrow()
    if one.is_never_cut or len(first) <= MOST_ROWS:
        if folder is not None:
            _write(first, folder / one.name)
        return Answer.of(rows_of(first))
    if folder is not None:
        in_order.write.parquet((folder / one.name).as_uri())
    return _cut(one, table, first)


def _cut(one: "Analysis", table: "DataFrame", first: "pa.Table") -> Answer:
    """The part of a long answer that is kept. What stands for all of it is asked of Spark."""
    from pyspark.sql import functions as f

    if one.weight is not None:
        largest_first = f.desc_nulls_last(one.weight)
        first = table.orderBy(largest_first, *one.order).limit(MOST_ROWS).toArrow()
    rows = rows_of(first.slice(0, MOST_ROWS))
    digest = rows if one.digest is None else rows_of(one.digest(table).toArrow())
    return Answer(rows, table.count(), digest)


def _write(first: "pa.Table", target: Path) -> None:
    import pyarrow.parquet as pq

    try:
        target.mkdir(parents=True)
        pq.write_table(first, target / _TABLE_FILE)
    except OSError as error:
        raise AnalysisError(f"--out: {error.strerror or error}") from error


def rows_of(table: "pa.Table") -> Rows:
    """Times are UTC and do not say so, wherever this runs: Spark's own rows would have them in
    the zone of this machine."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            moments = table.column(number).cast(pa.timestamp("us"))
            table = table.set_column(number, field.name, moments)
    rows: Rows = table.to_pylist()
    return rows
