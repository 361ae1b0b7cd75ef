"""The reader of streaming queries: it follows log directories as they grow.

Owns progress and admission. Progress is exact: the next offset of each partition, in the form of
Spark's Kafka source, {"topic": {"0": 23}}. Spark keeps it in the query's checkpoint. PySpark 4.2
changed what it asks of such a reader: it hands over where a batch starts and how much it may take,
which before is known here only from what was read last.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from analytics.logs.lookup import end_offset
from analytics.logs.partitions import PartitionLog
from analytics.source.options import Isolation, SourceOptions, TopicPartition
from analytics.source.ranges import (
    LogRange,
    committed_range,
    data_loss,
    offsets_as_json,
    offsets_from_json,
    present_offset,
    selected_logs,
    starting_offset,
)
from analytics.source.readers import read_split
from analytics.source.splits import plan_splits

if TYPE_CHECKING:
    import pyarrow as pa

Offsets = dict[TopicPartition, int]
JsonOffsets = dict[str, dict[str, int]]


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
        self._last_end: Offsets | None = None
        self._waiting_since: float | None = None

    def initialOffset(self) -> JsonOffsets:  # noqa: N802
        """Where a new query starts; one with a checkpoint goes on from there instead."""
        bound, fails = self.options.starting, self.options.fails_on_data_loss
        offsets = {
            (log.topic, log.partition): starting_offset(log, bound, fails) for log in self._logs()
        }
        self._last_end = offsets
        return offsets_as_json(offsets)

    def latestOffset(self) -> JsonOffsets:  # type: ignore[override]  # noqa: N802
        """Where the next batch ends. How much it may take counts from the last one; after a
        restart that is known once a batch has been planned, and the first has no limit."""
        latest = self.available()
        if self._last_end is not None:
            latest = self.admitted(self._last_end, self.none_before(self._last_end, latest))
        self._last_end = latest
        return offsets_as_json(latest)

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        """The splits of a batch. A partition that came since begins at its beginning."""
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
        return plan_splits(
            [one for one in ranges if one.first_offset < one.end_offset],
            self.options.task_bytes,
            self.options.min_tasks,
        )

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        return read_split(partition, self.options)

    def available(self) -> Offsets:
        """The offset after the last record that may be read, for each partition."""
        return {(log.topic, log.partition): self._readable_end(log) for log in self._logs()}

    def none_before(self, start: Mapping[TopicPartition, int], latest: Offsets) -> Offsets:
        """The latest offsets, none of which may lie before what was read: such a log was cut off,
        or another one has its name."""
        shorter = sorted(name for name in latest if latest[name] < start.get(name, 0))
        if shorter and self.options.fails_on_data_loss:
            topic, partition = shorter[0]
            ends = f"ends at {latest[shorter[0]]}, not {start[shorter[0]]}"
            raise data_loss(f"{topic}-{partition} {ends}")
        return {**latest, **{name: start[name] for name in shorter}}

    def admitted(self, start: Mapping[TopicPartition, int], latest: Offsets) -> Offsets:
        """How far the next batch may go, as the options on triggers say."""
        start = self._with_new_partitions(start, latest)
        waiting = sum(max(0, latest[name] - start[name]) for name in latest)
        if self._should_wait(waiting):
            return dict(start)
        most = self.options.max_offsets_per_trigger
        return latest if most is None else limited(start, latest, most)

    def _with_new_partitions(
        self, start: Mapping[TopicPartition, int], latest: Offsets
    ) -> dict[TopicPartition, int]:
        logs = {(log.topic, log.partition): log for log in self._logs()}
        return {
            **{name: logs[name].start_offset for name in latest if name in logs},
            **start,
        }

    def _should_wait(self, waiting: int) -> bool:
        least = self.options.min_offsets_per_trigger
        if least is None or waiting >= least:
            self._waiting_since = None
            return False
        now = self._clock()
        if self._waiting_since is None:
            self._waiting_since = now
        if (now - self._waiting_since) * 1000 >= self.options.max_trigger_delay_ms:
            self._waiting_since = None
            return False
        return True

    def _logs(self) -> list[PartitionLog]:
        return selected_logs(self.options, is_streaming=True)

    def _readable_end(self, log: PartitionLog) -> int:
        end = end_offset(log)
        if self.options.isolation is Isolation.COMMITTED:
            return committed_range(log, log.start_offset, end).end_offset
        return end

    def _check_present(
        self, wanted: Mapping[TopicPartition, int], logs: Mapping[TopicPartition, PartitionLog]
    ) -> None:
        gone = sorted(f"{topic}-{number}" for topic, number in wanted.keys() - logs.keys())
        if gone and self.options.fails_on_data_loss:
            raise data_loss(f"there is no log of {', '.join(gone)} any more")

    def _range(self, log: PartitionLog, first: int | None, end: int) -> LogRange:
        offset = log.start_offset if first is None else first
        if first is not None and offset < end:
            offset = present_offset(log, offset, self.options.fails_on_data_loss)
        if self.options.isolation is Isolation.COMMITTED and offset < end:
            return committed_range(log, offset, end)
        return LogRange(log, offset, end)


def limited(start: Mapping[TopicPartition, int], latest: Offsets, most: int) -> Offsets:
    """Ends that lie at most so many offsets after the starts in all, shared in proportion to what
    waits. Every partition that has something waiting moves, so that none is starved."""
    waiting = {name: max(0, latest[name] - start[name]) for name in latest}
    total = sum(waiting.values())
    if total <= most:
        return latest
    return {
        name: start[name] + min(count, max(1 if count else 0, count * most // total))
        for name, count in waiting.items()
    }
