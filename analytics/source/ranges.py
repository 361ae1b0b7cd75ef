"""Which logs a query reads, and from which offset to which in each.

Owns what the options mean for the logs that there are: topics, offsets and timestamps to ranges of
offsets. Must not know Spark.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analytics.errors import AnalysisError
from analytics.logs.lookup import end_offset, offset_for_timestamp
from analytics.logs.partitions import PartitionLog, find_all
from analytics.pieces import NO_FLOOR, NO_LIMIT
from analytics.source.options import (
    EARLIEST,
    LATEST,
    Bound,
    Isolation,
    Selection,
    SourceOptions,
    TopicPartition,
)
from storage.txn_index import AbortedTransaction


@dataclass(frozen=True, slots=True)
class LogRange:
    """What is read of one log: offsets from the first up to the end, which is excluded."""

    log: PartitionLog
    first_offset: int
    end_offset: int = NO_LIMIT
    aborted: tuple[AbortedTransaction, ...] = ()


def selected_logs(options: SourceOptions, *, is_streaming: bool = False) -> list[PartitionLog]:
    """The logs that a query reads, each partition once: where replicas of it lie side by side,
    the one that reaches furthest. Topics that a streaming query names may come later."""
    try:
        found = find_all(options.directories)
    except AnalysisError:
        if not is_streaming:
            raise
        found = []
    chosen = [log for log in found if options.selection.includes(log.topic, log.partition)]
    if not is_streaming:
        _check_selected(options.selection, chosen)
    return _one_per_partition(chosen)


def _check_selected(selection: Selection, logs: Sequence[PartitionLog]) -> None:
    topics = {log.topic for log in logs}
    partitions = {(log.topic, log.partition) for log in logs}
    missing = sorted((selection.topics or frozenset()) - topics)
    missing += sorted(
        f"{topic}-{number}" for topic, number in (selection.partitions or frozenset()) - partitions
    )
    if missing:
        raise AnalysisError(f"there is no log of {', '.join(missing)} in these directories")


def _one_per_partition(logs: Iterable[PartitionLog]) -> list[PartitionLog]:
    replicas: dict[TopicPartition, list[PartitionLog]] = {}
    for log in logs:
        replicas.setdefault((log.topic, log.partition), []).append(log)
    return [
        found[0] if len(found) == 1 else max(found, key=end_offset)
        for _, found in sorted(replicas.items())
    ]


def batch_ranges(options: SourceOptions) -> list[LogRange]:
    """The ranges of a batch query, for records."""
    logs = selected_logs(options)
    _check_named(options.starting, "startingOffsets", logs)
    _check_named(options.ending, "endingOffsets", logs)
    return [_range(log, options) for log in logs]


def file_ranges(options: SourceOptions) -> list[LogRange]:
    """The ranges of a query for batches: of every replica, and without bounds all that its files
    hold, below the log start as well."""
    logs = [
        log
        for log in find_all(options.directories)
        if options.selection.includes(log.topic, log.partition)
    ]
    _check_named(options.starting, "startingOffsets", logs)
    _check_named(options.ending, "endingOffsets", logs)
    return [_file_range(log, options) for log in logs]


def _file_range(log: PartitionLog, options: SourceOptions) -> LogRange:
    first = NO_FLOOR
    if options.starting.offset != EARLIEST:
        first = starting_offset(log, options.starting, options.fails_on_data_loss)
    return LogRange(log, first, _ending_offset(log, options))


def _check_named(bound: Bound, option: str, logs: Sequence[PartitionLog]) -> None:
    """Offsets and timestamps for single partitions must be there for all that are read."""
    named = bound.offsets if bound.offsets is not None else bound.timestamps
    if named is None:
        return
    read = {(log.topic, log.partition) for log in logs}
    for partitions, what in ((read - named.keys(), "lacks"), (named.keys() - read, "has also")):
        if partitions:
            names = ", ".join(sorted(f"{topic}-{number}" for topic, number in partitions))
            raise AnalysisError(f"{option}: it must name just what is read, and {what} {names}")


def _range(log: PartitionLog, options: SourceOptions) -> LogRange:
    first = starting_offset(log, options.starting, options.fails_on_data_loss)
    end = _ending_offset(log, options)
    if options.isolation is Isolation.UNCOMMITTED:
        return LogRange(log, first, end)
    return committed_range(log, first, end)


def committed_range(log: PartitionLog, first: int, end: int) -> LogRange:
    """A range without what is not decided yet, and with what was aborted in it."""
    from analytics.transactions import transactions_of

    transactions = transactions_of(log)
    end = min(end, transactions.last_stable_offset)
    return LogRange(log, first, end, transactions.within(first, end))


def starting_offset(log: PartitionLog, bound: Bound, fails_on_data_loss: bool) -> int:
    """The first offset that a query reads of a log."""
    name = log.topic, log.partition
    timestamp = bound.timestamp if bound.timestamps is None else bound.timestamps[name]
    if timestamp is not None:
        found = offset_for_timestamp(log, timestamp)
        if found is not None:
            return found
        if bound.is_latest_if_none:
            return end_offset(log)
        raise AnalysisError(
            f"{log.topic}-{log.partition}: no record has the timestamp {timestamp} or a later one;"
            ' option("startingOffsetsByTimestampStrategy", "latest") starts at its end'
        )
    offset = bound.offset if bound.offsets is None else bound.offsets[name]
    if offset == EARLIEST or offset is None:
        return log.start_offset
    if offset == LATEST:
        return end_offset(log)
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


def _ending_offset(log: PartitionLog, options: SourceOptions) -> int:
    bound = options.ending
    name = log.topic, log.partition
    timestamp = bound.timestamp if bound.timestamps is None else bound.timestamps[name]
    if timestamp is not None:
        found = offset_for_timestamp(log, timestamp)
        return NO_LIMIT if found is None else found
    offset = bound.offset if bound.offsets is None else bound.offsets[name]
    if offset == LATEST or offset is None:
        return NO_LIMIT
    if options.fails_on_data_loss and offset > end_offset(log):
        raise data_loss(f"{log.topic}-{log.partition} ends at {end_offset(log)}, not {offset}")
    return offset


def offsets_as_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets in the form of Spark's Kafka source: by topic, then by partition."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def offsets_from_json(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
