"""Where in one log a query begins and ends.

Owns what offsets, timestamps and the isolation level mean for a log that is there. Must not know
Spark.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from analytics.logs.lookup import end_offset, offset_for_timestamp
from analytics.logs.partitions import PartitionLog
from analytics.pieces import NO_LIMIT
from analytics.source.options import EARLIEST, LATEST, Bound, Isolation, SourceOptions
from storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from analytics.transactions import TransactionView


@dataclass(frozen=True, slots=True)
class LogRange:
    """What is read of one log: offsets from the first up to the end, which is excluded."""

    log: PartitionLog
    first_offset: int
    end_offset: int = NO_LIMIT
    aborted: tuple[AbortedTransaction, ...] = ()


class ReadableLog:
    """A log as far as a query may read it: to its end, or to its first open transaction."""

    def __init__(self, log: PartitionLog, isolation: Isolation) -> None:
        self.log = log
        self._isolation = isolation

    def __str__(self) -> str:
        return f"{self.log.topic}-{self.log.partition}"

    @cached_property
    def _transactions(self) -> "TransactionView | None":
        if self._isolation is Isolation.UNCOMMITTED:
            return None
        from analytics.transactions import transactions_of

        return transactions_of(self.log)

    @cached_property
    def end_offset(self) -> int:
        """The offset after the last record that may be read."""
        end = end_offset(self.log)
        return end if self._transactions is None else min(end, self._transactions.readable_end)

    def offset_for(self, timestamp: int) -> int | None:
        """The first record that is that young, of those that may be read."""
        found = offset_for_timestamp(self.log, timestamp)
        is_hidden = self._transactions and found is not None and found >= self.end_offset
        return None if is_hidden else found

    def between(self, first: int, end: int) -> LogRange:
        """A range without what is not decided yet, and with what was aborted in it."""
        if self._transactions is None:
            return LogRange(self.log, first, end)
        end = min(end, self._transactions.readable_end)
        return LogRange(self.log, first, end, self._transactions.within(first, end))


def bounded(readable: ReadableLog, options: SourceOptions) -> tuple[int, int]:
    """The first offset that a query reads of a log, and the end; NO_LIMIT where it is the log's."""
    first = starting_offset(readable, options.starting, options.fails_on_data_loss)
    end = _ending_offset(readable, options)
    if first > end and first > readable.log.start_offset:
        raise AnalysisError(
            f"{readable}: {options.starting.option} is {first},"
            f" behind {options.ending.option}, {end}"
        )
    return first, end


def starting_offset(readable: ReadableLog, bound: Bound, fails_on_data_loss: bool) -> int:
    """The first offset that a query reads of a log."""
    log = readable.log
    name = log.topic, log.partition
    timestamp = bound.timestamp if bound.timestamps is None else bound.timestamps[name]
    if timestamp is not None:
        found = readable.offset_for(timestamp)
        if found is not None:
            return found
        if bound.is_latest_if_none:
            return readable.end_offset
        raise AnalysisError(
            f"{readable}: no record has the timestamp {timestamp} or a later one;"
            ' option("startingOffsetsByTimestampStrategy", "latest") starts at its end'
        )
    offset = bound.offset if bound.offsets is None else bound.offsets[name]
    if offset == EARLIEST or offset is None:
        return log.start_offset
    if offset == LATEST:
        return readable.end_offset
    return present_offset(log, offset, fails_on_data_loss)


def present_offset(log: PartitionLog, offset: int, fails_on_data_loss: bool) -> int:
    """An offset to read from, unless records that lie there are gone."""
    if offset >= log.start_offset:
        return offset
    if fails_on_data_loss:
        raise data_loss(f"{log.topic}-{log.partition} begins at {log.start_offset}, not {offset}")
    return log.start_offset


def data_loss(what: str) -> AnalysisError:
    return AnalysisError(
        f'{what}: records are gone; option("failOnDataLoss", "false") goes on without them'
    )


def _ending_offset(readable: ReadableLog, options: SourceOptions) -> int:
    bound = options.ending
    name = readable.log.topic, readable.log.partition
    timestamp = bound.timestamp if bound.timestamps is None else bound.timestamps[name]
    if timestamp is not None:
        found = readable.offset_for(timestamp)
        return NO_LIMIT if found is None else found
    offset = bound.offset if bound.offsets is None else bound.offsets[name]
    if offset == LATEST or offset is None:
        return NO_LIMIT
    if options.fails_on_data_loss and offset > (end := end_offset(readable.log)):
        raise data_loss(f"{readable} ends at {end}, not {offset}")
    return offset
