"""The reader of streaming queries: it follows log directories as they grow.

Owns progress and admission. Progress is exact: the next offset of each partition, in the form of
Spark's Kafka source, {"topic": {"0": 23}}. Spark keeps it in the query's checkpoint. PySpark 4.2
changed what it asks of such a reader: it hands over where a batch starts and how much it may take,
which before is known here only from what was read last.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from analytics.logs.partitions import PartitionLog
from analytics.source.bounds import (
    LogRange,
    ReadableLog,
    data_loss,
    present_offset,
    starting_offset,
)
from analytics.source.options import SourceOptions, TopicPartition
from analytics.source.ranges import (
    check_named,
    offsets_as_json,
    offsets_from_json,
    selected_logs,
)
from analytics.source.readers import read_split
from analytics.source.splits import plan_splits

if TYPE_CHECKING:
    import pyarrow as pa

Offsets = dict[TopicPartition, int]
JsonOffsets = dict[str, dict[str, int]]


class Span(NamedTuple):
    """What can be read of a partition: from its beginning to the offset after the last record."""

    start: int
    end: int


Spans = dict[TopicPartition, Span]


def stream_reader(options: SourceOptions) -> DataSourceStreamReader:
    """The reader for the PySpark that is there."""
    try:
        from pyspark.sql.streaming.datasource import ReadLimit
    except ImportError:
        return LogStreamReader(options)
    del ReadLimit
    from analytics.source.admission import AdmittingLogStreamReader

    return AdmittingLogStreamReader(options)


class LogStreamReader(DataSourceStreamReader):
    """The reader as PySpark 4.1 wants it."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options
        self._clock = clock
        self._initial: Offsets | None = None
        self._last_end: Offsets | None = None
        self._last_trigger: float | None = None

    def initialOffset(self) -> JsonOffsets:  # noqa: N802
        """Where a new query starts; one with a checkpoint goes on from there instead. Spark asks
        more than once, of PySpark 4.1 after it has asked where the first batch ends: the answer is
        the first one, or records that go meanwhile would be missing without a word."""
        if self._initial is None:
            self._initial = self._starts()
        if self._last_end is None:
            self._last_end = self._initial
        return offsets_as_json(self._initial)

    def _starts(self) -> Offsets:
        bound, fails = self.options.starting, self.options.fails_on_data_loss
        logs = self._logs()
        check_named(bound, logs)
        return {
            (log.topic, log.partition): starting_offset(self._readable(log), bound, fails)
            for log in logs
        }

    def latestOffset(self) -> JsonOffsets:  # type: ignore[override]  # noqa: N802
        """Where the next batch ends. How much it may take counts from the last one, which after a
        restart Spark has planned before it asks this."""
        if self._last_end is None:
            self.initialOffset()
        assert self._last_end is not None
        self._last_end = self.next_end(self._last_end, self.available())
        return offsets_as_json(self._last_end)

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        """The splits of a batch. A partition that came since begins at its beginning, offset 0."""
        first, last = offsets_from_json(start), offsets_from_json(end)
        if self._last_end is None:
            self._last_end = last
        logs = {(log.topic, log.partition): log for log in self._logs()}
        self._check_present(last, logs)
        ranges = [
            self._range(log, first.get(name), last[name])
            for name, log in logs.items()
            if name in last
        ]
        return plan_splits(ranges, self.options.task_bytes, self.options.min_tasks)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        return read_split(partition, self.options)

    def available(self) -> Spans:
        """What can be read of each partition."""
        return {
            (log.topic, log.partition): Span(log.start_offset, self._readable(log).end_offset)
            for log in self._logs()
        }

    def next_end(
        self, start: Offsets, available: Spans, *, is_limited: bool = True, may_wait: bool = True
    ) -> Offsets:
        """Where the batch that starts there ends, as the options on triggers say."""
        self._check_present(start, available)
        latest = {name: span.end for name, span in available.items()}
        self._check_not_shorter(start, latest)
        if not available:  # a directory that is away comes back with what it had
            return start
        begun = {**{name: span.start for name, span in available.items()}, **start}
        if not is_limited:
            return latest
        waiting = sum(max(0, end - begun[name]) for name, end in latest.items())
        if may_wait and self._should_wait(waiting):
            return start
        most = self.options.max_offsets_per_trigger
        return latest if most is None else limited(begun, latest, most)

    def _should_wait(self, waiting: int) -> bool:
        """Whether there is something, but too little, and the last trigger is not long ago."""
        least = self.options.min_offsets_per_trigger
        if least is None or waiting == 0:
            return False
        now = self._clock()
        if waiting < least and self._last_trigger is not None:
            passed_ms = (now - self._last_trigger) * 1000
            if passed_ms < self.options.max_trigger_delay_ms:
                return True
        self._last_trigger = now
        return False

    def _logs(self) -> list[PartitionLog]:
        return selected_logs(self.options, is_streaming=True)

    def _readable(self, log: PartitionLog) -> ReadableLog:
        return ReadableLog(log, self.options.isolation)

    def _check_present(
        self, wanted: Mapping[TopicPartition, int], found: Collection[TopicPartition]
    ) -> None:
        gone = sorted(
            f"{topic}-{number}" for topic, number in wanted if (topic, number) not in found
        )
        if gone and self.options.fails_on_data_loss:
            raise data_loss(f"there is no log of {', '.join(gone)} any more")

    def _check_not_shorter(self, start: Mapping[TopicPartition, int], latest: Offsets) -> None:
        """A log that ends before what was read was cut off, or another one has its name. Where
        that is no error, the query goes on from that end, as Spark's Kafka source does."""
        if not self.options.fails_on_data_loss:
            return
        for (topic, partition), end in sorted(latest.items()):
            if end < (begun := start.get((topic, partition), 0)):
                raise data_loss(f"{topic}-{partition} ends at {end}, not {begun}")

    def _range(self, log: PartitionLog, first: int | None, end: int) -> LogRange:
        if first is not None and first >= end:
            return LogRange(log, first, end)
        offset = present_offset(log, first or 0, self.options.fails_on_data_loss)
        readable = self._readable(log)
        if self.options.fails_on_data_loss and readable.end_offset < end:
            raise data_loss(f"{readable} ends at {readable.end_offset}, not {end}")
        return readable.between(offset, end)


def limited(start: Mapping[TopicPartition, int], latest: Offsets, most: int) -> Offsets:
    """Ends that lie at most so many offsets after the starts in all, shared in proportion to what
    waits. Every partition that has something waiting moves, so that none is starved."""
    waiting = {name: max(0, latest[name] - start[name]) for name in latest}
    total = sum(waiting.values())
    if total <= most:
        return latest
    return {
        name: start[name] + max(1, count * most // total) if count else latest[name]
        for name, count in waiting.items()
    }
