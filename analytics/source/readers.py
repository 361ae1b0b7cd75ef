"""The readers of batch queries: one per table, with and without filters.

Owns the steps from options to rows. What a reader has learned when it plans travels with it to the
tasks.
"""

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from analytics.pieces import NO_FLOOR, NO_LIMIT
from analytics.source.bounds import LogRange
from analytics.source.filters import BATCH_COLUMNS, RECORD_COLUMNS, FilterColumns, Narrowing, narrow
from analytics.source.options import SourceOptions
from analytics.source.ranges import batch_ranges, file_ranges
from analytics.source.splits import Split, plan_splits

if TYPE_CHECKING:
    import pyarrow as pa

_PUSHDOWN_WORKER = "data_source_pushdown_filters"


def takes_filters(options: SourceOptions) -> bool:
    """Whether a query is narrowed by its filters: only where a user says that each query loads its
    own table. Spark keeps one plan per load(), the last that filters have narrowed, and reads by it
    whatever else is asked of that DataFrame, a union of two parts of it as well."""
    return options.narrows_by_filters and _is_pushdown_on()


def _is_pushdown_on() -> bool:
    """Whether Spark asks for filters now. A reader that takes filters while it does not ask is an
    error to Spark, and the setting is not told to sources: but it is another worker that asks."""
    frame = sys._getframe()
    while frame is not None:
        if _PUSHDOWN_WORKER in frame.f_code.co_filename:
            return True
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


class TableReader(DataSourceReader):
    """What the readers have in common: options, and what filters leave.

    Where nothing is to be read, Spark asks for one partition of its own, which is no Split.
    """

    filter_columns: FilterColumns = RECORD_COLUMNS

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.narrowing = Narrowing()

    def take_filters(self, filters: Sequence[Filter]) -> Iterable[Filter]:
        """Narrow what is read. All filters are handed back: Spark applies them to the rows."""
        self.narrowing = narrow(filters, self.filter_columns)
        return filters

    def ranges(self) -> list[LogRange]:
        raise NotImplementedError

    def partitions(self) -> Sequence[InputPartition]:
        first_timestamp, _ = self.narrowing.timestamps
        return plan_splits(
            [self._narrowed(one) for one in self.ranges() if self._allows(one)],
            self.options.task_bytes,
            self.options.min_tasks,
            first_timestamp,
        )

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        raise NotImplementedError

    def _allows(self, one: LogRange) -> bool:
        return self.narrowing.allows(one.log.topic, one.log.partition)

    def _narrowed(self, one: LogRange) -> LogRange:
        low, high = self.narrowing.offsets
        end = NO_LIMIT if high == NO_LIMIT else high + 1
        return replace(
            one,
            first_offset=max(one.first_offset, low),
            end_offset=min(one.end_offset, end),
        )


class RecordReader(TableReader):
    """Reads the record table."""

    def ranges(self) -> list[LogRange]:
        return batch_ranges(self.options)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        return read_split(partition, self.options, self.narrowing.timestamps)


class FilteringRecordReader(RecordReader):
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        return self.take_filters(filters)


class BatchReader(TableReader):
    """Reads the batch table: of every replica, and all batches of its files."""

    filter_columns = BATCH_COLUMNS

    def ranges(self) -> list[LogRange]:
        return file_ranges(self.options)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        from analytics.batch_table import read_batches
        from analytics.problems import policy

        if not isinstance(partition, Split):
            return iter(())
        batches = read_batches(
            partition.pieces,
            policy(self.options.skips_damage),
            check_crc=self.options.checks_crc,
            fail_on_data_loss=self.options.fails_on_data_loss,
            first_timestamp=self.narrowing.timestamps[0],
        )
        return sparing_from_garbage_collection(batches)


class FilteringBatchReader(BatchReader):
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        return self.take_filters(filters)


class ProblemReader(BatchReader):
    """Reads the problems table: whatever keeps a batch or its records from being read."""

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        from analytics.problem_table import read_problems

        if not isinstance(partition, Split):
            return iter(())
        problems = read_problems(partition.pieces, self.options.fails_on_data_loss)
        return sparing_from_garbage_collection(problems)


def read_split(
    partition: InputPartition,
    options: SourceOptions,
    timestamps: tuple[int, int] = (NO_FLOOR, NO_LIMIT),
) -> Iterator["pa.RecordBatch"]:
    """The records of a split. Only tasks come here: what decodes is loaded by them alone."""
    from analytics.problems import policy
    from analytics.record_table import RecordQuery, read_records

    if not isinstance(partition, Split):
        return iter(())
    query = RecordQuery(
        options.columns,
        *timestamps,
        fail_on_data_loss=options.fails_on_data_loss,
        rows_per_batch=options.rows_per_arrow_batch,
        bytes_per_batch=options.bytes_per_arrow_batch,
    )
    records = read_records(partition.pieces, query, policy(options.skips_damage))
    return sparing_from_garbage_collection(records)


def sparing_from_garbage_collection(
    batches: Iterator["pa.RecordBatch"],
) -> Iterator["pa.RecordBatch"]:
    """The same, and all that it took to make the first one is left out of collections of garbage:
    Spark's Python workers run a full one after every task, and to look at Numba and at what it has
    loaded takes longer than many a task."""
    for batch in batches:
        _freeze_once()
        yield batch


@cache
def _freeze_once() -> None:
    gc.freeze()
