"""What only shows between the segments of a partition: gaps, and leader epochs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from analytics.audit.faults import Fault, Kind
from analytics.audit.index_lengths import short_indexes
from analytics.audit.segments import SegmentSummary
from analytics.audit.sequence import KnownEpochs, epoch_at
from analytics.logs.partitions import PartitionLog, Segment
from storage.checkpoint import LEADER_EPOCH_CHECKPOINT

Audited = Sequence[tuple[Segment, SegmentSummary]]


class Checkpointed(NamedTuple):
    """What the checkpoints say of a partition."""

    epochs: KnownEpochs = ()
    written_up_to: int = 0
    is_compacted: bool = False


def partition_faults(
    log: PartitionLog, audited: Audited, checkpointed: Checkpointed
) -> Iterator[Fault]:
    """Faults between segments that are sound in themselves. Compaction leaves gaps."""
    is_compacted = checkpointed.is_compacted or any(one.was_compacted for _, one in audited)
    missing: list[Fault] = []
    if not is_compacted:
        missing = [*_gap_at_the_start(log, audited), *_gaps_between(log, audited)]
        for _, summary in audited:
            yield from summary.gaps
    missing += _lost_records(log, audited, checkpointed.written_up_to)
    yield from missing
    yield from _cut_off(log, audited, {fault.file for fault in missing})
    yield from _short_indexes(log, audited)
    if checkpointed.epochs:
        yield from _epoch_file_faults(log, audited, checkpointed.epochs)
    else:
        yield from _epochs_going_back(log, audited)


def _neighbours(audited: Audited) -> Iterator[tuple[SegmentSummary, Segment, SegmentSummary]]:
    """Each segment with batches, with the summary of the one before it that has some."""
    before: SegmentSummary | None = None
    for segment, summary in audited:
        if summary.first_offset is None:
            before = before if summary.is_complete else None
            continue
        if before is not None:
            yield before, segment, summary
        before = summary


def _gap_at_the_start(log: PartitionLog, audited: Audited) -> Iterator[Fault]:
    """A log begins with the offset that its first segment is named by, or was said to begin
    later."""
    for segment, summary in audited:
        if not summary.is_complete:
            return
        if summary.first_offset is None:
            continue
        if summary.first_offset > log.start_offset:
            missing = f"{log.start_offset} to {summary.first_offset - 1} are not there"
            yield _fault(log, segment.path, Kind.OFFSET_GAP, 0, summary.first_offset, missing)
        return


def _gaps_between(log: PartitionLog, audited: Audited) -> Iterator[Fault]:
    for before, segment, summary in _neighbours(audited):
        assert before.last_offset is not None
        assert summary.first_offset is not None
        lowest = before.last_offset + 1
        are_complete = before.is_complete and summary.is_complete
        if are_complete and summary.first_offset > lowest:
            missing = f"{lowest} to {summary.first_offset - 1} are not there"
            yield _fault(log, segment.path, Kind.OFFSET_GAP, 0, summary.first_offset, missing)


def _epochs_going_back(log: PartitionLog, audited: Audited) -> Iterator[Fault]:
    last: int | None = None
    for segment, summary in audited:
        if last is not None and summary.epochs and summary.epochs[0].epoch < last:
            first = summary.epochs[0]
            what = f"{first.epoch} follows {last} of the segment before"
            yield _fault(log, segment.path, Kind.LEADER_EPOCH, first.position, first.offset, what)
        if summary.epochs:
            last = max(last or 0, summary.epochs[-1].epoch)


def _epoch_file_faults(log: PartitionLog, audited: Audited, known: KnownEpochs) -> Iterator[Fault]:
    """Where batches begin whose epoch is another than the checkpoint of leader epochs has for
    them.

    It may know epochs without batches, and begin behind the first batch that is left; a file that
    is missing, as a crash may leave it, is made again by the next start.
    """
    told: set[int] = set()
    for segment, summary in audited:
        for start in summary.epochs:
            expected = epoch_at(known, start.offset)
            is_earlier = expected is None and start.epoch <= known[0][0]
            if expected != start.epoch and not is_earlier and start.epoch not in told:
                told.add(start.epoch)
                what = f"{start.epoch}, for which {LEADER_EPOCH_CHECKPOINT} has {expected}"
                yield _fault(log, segment.path, Kind.EPOCH_FILE, start.position, start.offset, what)


def _lost_records(log: PartitionLog, audited: Audited, written_up_to: int) -> Iterator[Fault]:
    """Where a checkpoint says that more was written than is there."""
    if not all(summary.is_complete for _, summary in audited):
        return
    segment, summary = audited[-1]
    ends = [summary.last_offset + 1 for _, summary in audited if summary.last_offset is not None]
    end = max(ends, default=segment.base_offset)
    if end < written_up_to:
        what = f"the checkpoints know of records up to {written_up_to - 1}"
        yield _fault(log, segment.path, Kind.LOST, summary.end, end, what)


def _cut_off(log: PartitionLog, audited: Audited, told: set[str]) -> Iterator[Fault]:
    """Where indexes lead past the end of their segment, and no gap and no loss is told behind it.
    If several do, it is the segment that was cut."""
    for number, (segment, summary) in enumerate(audited):
        if not summary.past_end:
            continue
        behind = (one.path for one, it in audited[number + 1 :] if it.first_offset is not None)
        if next(behind, audited[-1][0].path) in told:
            continue
        if len(summary.past_end) == 1:
            yield summary.past_end[0].fault
            continue
        what = (
            f"its indexes know of records up to {max(one.last_offset for one in summary.past_end)}"
        )
        yield _fault(log, segment.path, Kind.LOST, summary.end, summary.next_offset, what)


def _short_indexes(log: PartitionLog, audited: Audited) -> Iterator[Fault]:
    for number, missing in short_indexes([summary.index_lengths for _, summary in audited]):
        segment, summary = audited[number]
        assert summary.index_lengths is not None
        path = segment.index_path("index")
        what = f"it lacks {missing} entries or more that the time index was given with them"
        yield _fault(log, path, Kind.OFFSET_INDEX, summary.index_lengths.end, None, what)


def _fault(
    log: PartitionLog, path: str, kind: Kind, position: int | None, offset: int | None, detail: str
) -> Fault:
    return Fault(log.log_dir, log.topic, log.partition, path, position, offset, kind.value, detail)
