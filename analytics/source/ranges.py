"""Which logs a query reads, and from which offset to which in each.

Owns the choice of logs, and what the options mean for all of them together. Must not know Spark.
"""

from collections.abc import Iterable, Mapping, Sequence

from analytics.errors import AnalysisError
from analytics.logs.lookup import end_offset
from analytics.logs.partitions import PartitionLog, find_all
from analytics.pieces import NO_FLOOR
from analytics.source.bounds import LogRange, ReadableLog, bounded
from analytics.source.options import (
    EARLIEST,
    Bound,
    Isolation,
    Selection,
    SourceOptions,
    TopicPartition,
)


def selected_logs(options: SourceOptions, *, is_streaming: bool = False) -> list[PartitionLog]:
    """The logs that a query reads, each partition once: where replicas of it lie side by side,
    the one that reaches furthest. Topics that a streaming query names may come later."""
    return _one_per_partition(_chosen(options, is_streaming))


def _chosen(options: SourceOptions, is_streaming: bool = False) -> list[PartitionLog]:
    found = find_all(options.directories, may_be_empty=is_streaming)
    chosen = [log for log in found if options.selection.includes(log.topic, log.partition)]
    if not is_streaming:
        _check_selected(options.selection, chosen)
    return chosen


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
    check_named(options.starting, logs)
    check_named(options.ending, logs)
    readable = [ReadableLog(log, options.isolation) for log in logs]
    return [one.between(*bounded(one, options)) for one in readable]


def file_ranges(options: SourceOptions) -> list[LogRange]:
    """The ranges of a query for batches: of every replica, and without bounds all that its files
    hold, below the log start as well."""
    logs = _chosen(options)
    check_named(options.starting, logs)
    check_named(options.ending, logs)
    return [_file_range(ReadableLog(log, Isolation.UNCOMMITTED), options) for log in logs]


def _file_range(readable: ReadableLog, options: SourceOptions) -> LogRange:
    first, end = bounded(readable, options)
    return readable.between(NO_FLOOR if options.starting.offset == EARLIEST else first, end)


def check_named(bound: Bound, logs: Sequence[PartitionLog]) -> None:
    """Offsets and timestamps for single partitions must be there for all that are read."""
    named = bound.offsets if bound.offsets is not None else bound.timestamps
    if named is None:
        return
    read = {(log.topic, log.partition) for log in logs}
    for partitions, what in ((read - named.keys(), "lacks"), (named.keys() - read, "has also")):
        if partitions:
            names = ", ".join(sorted(f"{topic}-{number}" for topic, number in partitions))
            raise AnalysisError(
                f"{bound.option}: it must name just what is read, and {what} {names}"
            )


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
