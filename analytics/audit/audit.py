"""The whole audit: segments in parallel on Spark, the rest where it was started."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from pyspark.sql import functions as f

from analytics.audit.directories import (
    OFFSET_CHECKPOINTS,
    PlacedFiles,
    log_directory_faults,
    ordered_epochs,
    partition_directory_faults,
    segments_out_of_reach,
)
from analytics.audit.faults import SPARK_SCHEMA, Fault, shown
from analytics.audit.partitions import Checkpointed, partition_faults
from analytics.audit.segments import SegmentAudit, SegmentSummary
from analytics.audit.sequence import KnownEpochs
from analytics.audit.unread import unread_partition_faults
from analytics.logs import places
from analytics.logs.partitions import PartitionLog, Segment
from storage.checkpoint import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
)
from storage.errors import CorruptCheckpointError
from storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASKS_PER_CORE: Final = 4
_FEW_BYTES: Final = 2 << 20

Work: TypeAlias = tuple[Segment, int | None, KnownEpochs, bool]


class Audited(NamedTuple):
    """What came of one segment."""

    faults: list[Fault]
    summary: SegmentSummary


def audit(
    spark: "SparkSession", partitions: Sequence[PartitionLog], few_bytes: int = _FEW_BYTES
) -> "DataFrame":
    """The table of faults, in the order of the directories; empty where all is well. Few bytes
    are read where this runs: to hand them to Spark's workers would take longer."""
    if sum(log.size for log in partitions) <= few_bytes:
        return spark.createDataFrame(audit_here(partitions), SPARK_SCHEMA)
    checkpoints = Checkpoints(partitions, PlacedFiles())
    audited = dict(_audited_on(spark, list(_work(partitions, checkpoints))))
    return spark.createDataFrame(all_faults(partitions, checkpoints, audited), SPARK_SCHEMA)


def audit_here(partitions: Sequence[PartitionLog]) -> list[Fault]:
    """The same without Spark, one segment after the other."""
    checkpoints = Checkpoints(partitions, PlacedFiles())
    audited = {one[0].path: _audit_segment(one) for one in _work(partitions, checkpoints)}
    return all_faults(partitions, checkpoints, audited)


def all_faults(
    partitions: Sequence[PartitionLog], checkpoints: "Checkpoints", audited: Mapping[str, Audited]
) -> list[Fault]:
    """Every fault, once the segments have been audited."""
    return [shown(fault) for fault in _all_faults(partitions, checkpoints, audited)]


def _all_faults(
    partitions: Sequence[PartitionLog], checkpoints: "Checkpoints", audited: Mapping[str, Audited]
) -> Iterator[Fault]:
    for log_dir in dict.fromkeys(log.log_dir for log in partitions):
        yield from log_directory_faults(log_dir, checkpoints.files)
        read = [log for log in partitions if log.log_dir == log_dir]
        yield from unread_partition_faults(log_dir, read, checkpoints.recovered(log_dir))
    for log in partitions:
        yield from partition_directory_faults(log, checkpoints.files)
        for segment in log.segments:
            yield from audited[segment.path].faults
        summaries = [(segment, audited[segment.path].summary) for segment in log.segments]
        yield from partition_faults(log, _with_unreachable(log, summaries), checkpoints.of(log))


def _with_unreachable(
    log: PartitionLog, summaries: list[tuple[Segment, SegmentSummary]]
) -> list[tuple[Segment, SegmentSummary]]:
    """With segments that are told as out of reach: nothing is known of their offsets."""
    beyond = [
        (replace(log.segments[0], base_offset=offset), SegmentSummary(is_complete=False))
        for offset in segments_out_of_reach(log)
    ]
    return sorted(summaries + beyond, key=lambda one: one[0].base_offset) if beyond else summaries


class Checkpoints:
    """What the checkpoint files say; those that cannot be read say nothing."""

    def __init__(self, partitions: Sequence[PartitionLog], files: Files) -> None:
        self.files = files
        self._offsets = {
            (log_dir, name): self._read_offsets(places.join(log_dir, name))
            for log_dir in {log.log_dir for log in partitions}
            for name in OFFSET_CHECKPOINTS
        }

    def of(self, log: PartitionLog) -> Checkpointed:
        name = (log.topic, log.partition)
        written = [
            self._offsets[log.log_dir, checkpoint].get(name, 0)
            for checkpoint in (HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT)
        ]
        path = places.join(log.directory, LEADER_EPOCH_CHECKPOINT)
        return Checkpointed(
            epochs=self._read_epochs(path),
            written_up_to=max(written),
            is_compacted=name in self._offsets[log.log_dir, CLEANER_CHECKPOINT],
        )

    def recovered(self, log_dir: str) -> dict[tuple[str, int], int]:
        """Up to where each partition of a log directory is known to be on the disk."""
        return self._offsets[log_dir, RECOVERY_POINT_CHECKPOINT]

    def _read_offsets(self, path: str) -> dict[tuple[str, int], int]:
        try:
            return read_offsets(self.files, path)
        except (CorruptCheckpointError, OSError):
            return {}

    def _read_epochs(self, path: str) -> KnownEpochs:
        try:
            return ordered_epochs(self.files, path)
        except (CorruptCheckpointError, OSError):
            return ()


def _work(partitions: Sequence[PartitionLog], checkpoints: Checkpoints) -> Iterator[Work]:
    for log in partitions:
        known = checkpoints.of(log)
        following = [one.base_offset for one in log.segments[1:]]
        for segment, next_offset in zip_longest(log.segments, following):
            yield segment, next_offset, known.epochs, known.is_compacted


def _audited_on(spark: "SparkSession", work: Sequence[Work]) -> Iterator[tuple[str, Audited]]:
    tasks = max(1, min(len(work), spark.sparkContext.defaultParallelism * _TASKS_PER_CORE))
    rows = [(pickle.dumps(one),) for one in work]
    audited = f.udf(_audit_pickled, "binary", useArrow=False)("work")
    results = spark.createDataFrame(rows, "work binary").repartition(tasks).select(audited)
    for (result,) in results.toLocalIterator():
        yield pickle.loads(result)


def _audit_pickled(data: bytes) -> bytes:
    work: Work = pickle.loads(data)
    return pickle.dumps((work[0].path, _audit_segment(work)))


def _audit_segment(work: Work) -> Audited:
    one = SegmentAudit(*work)
    one.run()
    return Audited(one.faults, one.summary)
