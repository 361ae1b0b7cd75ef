"""One segment: its batches, and its indexes against them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from analytics.audit.batch_walk import BatchWalk, Walked
from analytics.audit.faults import Fault, Kind
from analytics.audit.indexes import (
    Batches,
    offset_index_faults,
    time_index_faults,
    txn_index_faults,
)
from analytics.audit.sequence import BatchSequence, EpochStart, Finding, KnownEpochs, Place
from analytics.logs import places
from analytics.logs.partitions import Segment
from analytics.logs.places import PlacedFile
from storage.records.batches import Batch, iter_records
from storage.records.control import ControlType, parse_control_type
from storage.records.errors import RecordDataError
from storage.records.layout import MAGIC_2, NO_LEADER_EPOCH

_WIDEST_SEGMENT: Final = 1 << 31  # indexes have 31 bits for an offset
_LOOKS_AT_A_TAIL: Final = 5
_BETWEEN_LOOKS_SECONDS: Final = 0.02

_INDEX_CHECKS: Final[dict[str, Callable[[bytes, Batches], Iterator[Finding]]]] = {
    "index": offset_index_faults,
    "timeindex": time_index_faults,
    "txnindex": txn_index_faults,
}


class SegmentSummary(NamedTuple):
    """What the partition's audit needs of a segment; offsets are None where it has no batch."""

    first_offset: int | None = None
    last_offset: int | None = None
    epochs: Sequence[EpochStart] = ()
    gaps: Sequence[Fault] = ()
    was_compacted: bool = False
    is_complete: bool = True


class SegmentAudit:
    """Audits one segment; `faults` and `summary` are the result of `run`."""

    def __init__(
        self,
        segment: Segment,
        following: int | None,
        known_epochs: KnownEpochs = (),
    ) -> None:
        """`following` is the next segment's base offset, if there is one; `known_epochs` are those
        of the partition's leader-epoch-checkpoint."""
        self.faults: list[Fault] = []
        self.summary = SegmentSummary()
        self._segment = segment
        self._is_last = following is None
        end = segment.base_offset + _WIDEST_SEGMENT if following is None else following
        self._sequence = BatchSequence(range(segment.base_offset, end), known_epochs)
        self._findings: list[Finding] = []
        self._damaged: set[int] = set()
        self._damaged_end: int | None = None
        self._aborts: dict[int, int] = {}
        self._was_compacted = False

    def run(self) -> None:
        """A segment that was deleted meanwhile has no faults."""
        try:
            file = places.open_file(self._segment.path)
        except FileNotFoundError:
            return
        # Indexes first: a broker that runs adds to its log before it adds to them.
        indexes = {kind: self._read_index(kind) for kind in _INDEX_CHECKS}
        walk = self._walk(file, 0)
        for _ in range(_LOOKS_AT_A_TAIL):
            if not (self._is_last and walk.ending.is_cut_off):
                break
            time.sleep(_BETWEEN_LOOKS_SECONDS)  # it may be in the middle of being written
            try:
                walk = self._walk(places.open_file(self._segment.path), walk.ending.position)
            except FileNotFoundError:
                return
        self._look_at_ending(walk)
        self._conclude(indexes)

    def _walk(self, file: PlacedFile, start: int) -> BatchWalk:
        walk = BatchWalk(file, start, file.size)
        for walked in walk:
            if walked.is_intact:
                self._take(walked)
            else:
                self._take_damaged(walked)
        return walk

    def _take(self, walked: Walked) -> None:
        header = walked.header
        base_offset = self._base_offset(walked)
        if base_offset is None:
            return
        place = Place(base_offset, header.last_offset, walked.position, header.max_timestamp)
        if not self._sequence.take(place):
            self._damaged.add(walked.position)
            return
        if header.magic == MAGIC_2:
            if header.partition_leader_epoch != NO_LEADER_EPOCH:
                self._sequence.take_epoch(header.partition_leader_epoch, place)
            if 0 <= header.record_count < header.last_offset_delta + 1:
                self._was_compacted = True
        if header.is_control:
            self._take_marker(walked)

    def _take_damaged(self, walked: Walked) -> None:
        size = walked.header.size_in_bytes
        self._damaged.add(walked.position)
        self._damaged_end = walked.position + size
        what = f"the batch of {size} bytes has been changed"
        self._find(Kind.CRC, walked.position, walked.header.base_offset, what)

    def _base_offset(self, walked: Walked) -> int | None:
        """A wrapper of magic 0 or 1 carries its last offset; the first is inside."""
        header = walked.header
        if header.magic == MAGIC_2:
            return header.base_offset
        try:
            first = next(iter_records(Batch(header, walked.data)), None)
        except RecordDataError as error:
            self._damaged.add(walked.position)
            self._find(Kind.UNREADABLE, walked.position, header.base_offset, str(error))
            return None
        return header.base_offset if first is None else first.offset

    def _take_marker(self, walked: Walked) -> None:
        header = walked.header
        try:
            records = list(iter_records(Batch(header, walked.data)))
            kinds = [parse_control_type(record.key) for record in records]
        except RecordDataError as error:
            self._find(Kind.UNREADABLE, walked.position, header.base_offset, str(error))
            return
        if ControlType.ABORT in kinds:
            self._aborts[header.base_offset] = header.producer_id

    def _look_at_ending(self, walk: BatchWalk) -> None:
        ending = walk.ending
        if ending.reason is None or (self._is_last and walk.is_set_aside(ending.position)):
            return
        if ending.position == self._damaged_end:
            return  # that batch's length cannot be trusted either: one fault, told at that batch
        kind = Kind.TORN_TAIL if ending.is_cut_off and self._is_last else Kind.UNREADABLE
        self._find(kind, ending.position, self._sequence.next_offset, ending.reason)

    def _conclude(self, indexes: Mapping[str, bytes | None]) -> None:
        sequence = self._sequence
        self._findings += sequence.findings
        is_complete = all(one.kind is Kind.LEADER_EPOCH for one in self._findings)
        places = sequence.places
        self.summary = SegmentSummary(
            first_offset=places[0].base_offset if places else None,
            last_offset=places[-1].last_offset if places else None,
            epochs=sequence.epochs,
            gaps=[self._fault(one) for one in sequence.gaps] if is_complete else [],
            was_compacted=self._was_compacted,
            is_complete=is_complete,
        )
        self._findings.sort(key=lambda one: one.position)
        self.faults += [self._fault(one) for one in self._findings]
        batches = Batches(
            self._segment.base_offset,
            sequence,
            self._damaged,
            self._aborts,
            is_complete,
            self._was_compacted,
        )
        for kind, check in _INDEX_CHECKS.items():
            path, data = self._segment.index_path(kind), indexes[kind]
            if data is not None:
                self.faults += [
                    self._fault(one)._replace(file=path) for one in check(data, batches)
                ]

    def _read_index(self, kind: str) -> bytes | None:
        """None where there is no such file: told with the directory's other files, if need be."""
        try:
            return places.read_whole(self._segment.index_path(kind))
        except FileNotFoundError:
            return None

    def _find(self, kind: Kind, position: int, offset: int | None, detail: str) -> None:
        self._findings.append(Finding(kind, position, offset, detail))

    def _fault(self, found: Finding) -> Fault:
        one = self._segment
        place = (one.log_dir, one.topic, one.partition, one.path)
        return Fault(*place, found.position, found.offset, found.kind.value, found.detail)
