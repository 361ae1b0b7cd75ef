"""Has analyses answered by Spark, several at once: as rows for a report, as Parquet tables.

Owns the shape in which answers leave Spark. An answer that fits a report leaves once, and its
table is written from that; a larger one is written by Spark.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.errors import AnalysisError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from analytics.suite import Analysis
    from analytics.tables import Tables

Rows = list[dict[str, Any]]

MOST_ROWS: Final = 50_000

# Most of a small answer's time is Spark's planning, on one core.
_AT_ONCE: Final = 4
_TABLE_FILE: Final = "part-00000.parquet"


def answers(
    analyses: Sequence["Analysis"], tables: "Tables", folder: Path | None
) -> Iterator[tuple["Analysis", Rows]]:
    """Each analysis with its first rows, in order; its table, whole, goes into the folder. What
    has not begun when one fails, or when the caller has had enough, does not begin."""
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        running = [pool.submit(_answer, one, tables, folder) for one in analyses]
        for one, future in zip(analyses, running, strict=True):
            yield one, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _answer(one: "Analysis", tables: "Tables", folder: Path | None) -> Rows:
    answer = one.build(tables).orderBy(*one.order)
    first = answer.limit(MOST_ROWS + 1).toArrow()
    if folder is not None:
        _write(answer, first, folder / one.name)
    return rows_of(first.slice(0, MOST_ROWS))


def _write(answer: "DataFrame", first: "pa.Table", target: Path) -> None:
    import pyarrow.parquet as pq

    if len(first) > MOST_ROWS:
        answer.write.parquet(target.as_uri())
        return
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
