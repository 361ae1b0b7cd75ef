"""One segment: its batches, and its indexes against them."""

import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from analytics.audit.batch_walk import BatchWalk, Walked
from analytics.audit.directories import BETWEEN_LOOKS_SECONDS, LOOKS
from analytics.audit.faults import Fault, Kind
from analytics.audit.index_lengths import IndexLengths, index_lengths
from analytics.audit.indexes import OFFSET_INDEX, TIME_INDEX, Batches, in_runs
from analytics.audit.sequence import BatchSequence, EpochStart, Finding, KnownEpochs, Place
from analytics.audit.transaction_index import TRANSACTION_INDEX, Aborts, missing_aborts
from analytics.logs import places
from analytics.logs.partitions import Segment
from analytics.logs.places import NoRegularFileError, PlacedFile
from storage.records.batches import Batch, iter_records
from storage.records.control import ControlType, parse_control_type
from storage.records.errors import RecordDataError
from storage.records.layout import MAGIC_2, NO_LEADER_EPOCH

_WIDEST_SEGMENT: Final = 1 << 31  # indexes have 31 bits for an offset

_PAST_END: Final = "from here on its entries lead past the end of the log"
_SET_ASIDE: Final = ("index", "timeindex")
_TXN_INDEX: Final = "txnindex"
_INDEXES: Final = {
    "index": OFFSET_INDEX,
    "timeindex": TIME_INDEX,
    _TXN_INDEX: TRANSACTION_INDEX,
}


class PastEnd(NamedTuple):
    """An index that leads past the end of its segment, and up to which offset."""

    fault: Fault
    last_offset: int


class SegmentSummary(NamedTuple):
    """What the partition's audit needs of a segment; offsets are None where it has no batch."""

    first_offset: int | None = None
    last_offset: int | None = None
    epochs: Sequence[EpochStart] = ()
    gaps: Sequence[Fault] = ()
    was_compacted: bool = False
    is_complete: bool = True
    next_offset: int = 0
    end: int = 0
    past_end: Sequence[PastEnd] = ()
    index_lengths: IndexLengths | None = None


class SegmentAudit:
    """Audits one segment; `faults` and `summary` are the result of `run`."""

    def __init__(
        self,
        segment: Segment,
        following: int | None,
        known_epochs: KnownEpochs = (),
        is_of_compacted_log: bool = False,
    ) -> None:
        """`following` is the next segment's base offset, if there is one; `known_epochs` are those
        of the partition's leader-epoch-checkpoint, and whether the log was compacted is what the
        cleaner's checkpoint says."""
        self.faults: list[Fault] = []
        self.summary = SegmentSummary()
        self._segment = segment
        self._is_last = following is None
        end = segment.base_offset + _WIDEST_SEGMENT if following is None else following
        self._sequence = BatchSequence(range(segment.base_offset, end), known_epochs)
        self._findings: list[Finding] = []
        self._damaged: set[int] = set()
        self._damaged_end: int | None = None
        self._aborts = Aborts()
        self._was_compacted = False
        self._is_of_compacted_log = is_of_compacted_log

    def run(self) -> None:
        """A segment that was deleted meanwhile has no faults."""
        try:
            self._run()
        except FileNotFoundError:
            return
        except NoRegularFileError:  # told with the directory's other files
            self.summary = SegmentSummary(is_complete=False)
        except OSError as error:
            self._find(Kind.UNREADABLE, 0, None, f"it cannot be read: {error.strerror or error}")
            self.faults += [self._fault(one) for one in self._findings]
            self.summary = SegmentSummary(is_complete=False)

    def _run(self) -> None:
        # Indexes first: a broker that runs adds to its log before it adds to them, and a file is
        # as long as it was when it was opened.
        indexes = {kind: self._read_index(kind) for kind in _INDEXES}
        walk = self._walk(places.open_file(self._segment.path), 0)
        for _ in range(LOOKS):
            if not (self._is_last and walk.ending.is_cut_off):
                break
            time.sleep(BETWEEN_LOOKS_SECONDS)  # it may be in the middle of being written
            walk = self._walk(places.open_file(self._segment.path), walk.ending.position)
        self._look_at_ending(walk, indexes)
        self._conclude(walk.ending.position, indexes)

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
        elif header.is_transactional:
            self._aborts.take_write(header.producer_id, header.base_offset)

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
        is_abort = ControlType.ABORT in kinds
        self._aborts.take_marker(header.producer_id, header.base_offset, is_abort)

    def _look_at_ending(self, walk: BatchWalk, indexes: Mapping[str, bytes | None]) -> None:
        ending = walk.ending
        if ending.reason is None:
            return
        if ending.position == self._damaged_end:
            return  # that batch's length cannot be trusted either: one fault, told at that batch
        if self._is_last and walk.ends_with_zeros(ending.position):
            if not self._is_set_aside(ending.position, indexes):
                what = "from here on it is zeros, and no space is set aside in its indexes"
                self._find(Kind.UNREADABLE, ending.position, self._sequence.next_offset, what)
            return
        kind = Kind.TORN_TAIL if ending.is_cut_off and self._is_last else Kind.UNREADABLE
        self._find(kind, ending.position, self._sequence.next_offset, ending.reason)

    def _is_set_aside(self, position: int, indexes: Mapping[str, bytes | None]) -> bool:
        """Whether zeros may be what a broker put there: it sets space aside in all files of a
        segment, and gives it back in all of them, first in the indexes."""
        there = {kind: data for kind in _SET_ASIDE if (data := indexes[kind]) is not None}
        if not there or any(_INDEXES[kind].has_room(data) for kind, data in there.items()):
            return True
        time.sleep(BETWEEN_LOOKS_SECONDS)
        return places.open_file(self._segment.path).size <= position

    def _conclude(self, end: int, indexes: Mapping[str, bytes | None]) -> None:
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
            next_offset=sequence.next_offset,
            end=end,
        )
        self._findings.sort(key=lambda one: one.position)
        self.faults += [self._fault(one) for one in self._findings]
        is_compacted = self._was_compacted or self._is_of_compacted_log
        batches = Batches(
            self._segment.base_offset,
            sequence,
            self._damaged,
            self._aborts,
            is_complete,
            is_compacted or self._has_gaps(),
            self._is_last,
            gaps_are_told=not is_compacted,
        )
        if not sequence.is_misnamed:  # else indexes count from another name
            self._hold_against(batches, indexes)

    def _hold_against(self, batches: Batches, indexes: Mapping[str, bytes | None]) -> None:
        past_ends: list[PastEnd] = []
        before = len(self.faults)
        for kind, index in _INDEXES.items():
            path = self._segment.index_path(kind)
            data = indexes[kind] or b""
            past = index.past_end(data, batches)
            if past is not None:
                found = Finding(index.fault, past.position, past.first_offset, _PAST_END)
                fault = self._fault(found)._replace(file=path)
                past_ends.append(PastEnd(fault, past.last_offset))
                data = data[: past.position]
            unended = batches._replace(is_last=batches.is_last or past is not None)
            faults = []
            if indexes[kind] is not None:
                faults = list(in_runs(list(index.check(data, unended)), index.layout))
            if kind == _TXN_INDEX and not faults and past is None:
                faults = self._missing_aborts(batches)
            self.faults += [self._fault(one)._replace(file=path) for one in faults]
        self.summary = self.summary._replace(past_end=past_ends)
        offsets, times = indexes["index"], indexes["timeindex"]
        is_sound = batches.is_complete and not past_ends and len(self.faults) == before
        if is_sound and offsets is not None and times is not None:
            lengths = index_lengths(offsets, times, batches)
            self.summary = self.summary._replace(index_lengths=lengths)

    def _has_gaps(self) -> bool:
        """Compaction may take batches whole, and leave no other trace."""
        places = self._sequence.places
        starts_late = bool(places) and places[0].base_offset > self._segment.base_offset
        return starts_late or bool(self._sequence.gaps)

    def _missing_aborts(self, batches: Batches) -> list[Finding]:
        """Looked at again where some are missing: a broker writes a marker, then its entry."""
        for _ in range(LOOKS):
            found = list(missing_aborts(self._read_index(_TXN_INDEX) or b"", batches))
            if not found or not self._is_last:
                break
            time.sleep(BETWEEN_LOOKS_SECONDS)
        return found

    def _read_index(self, kind: str) -> bytes | None:
        """None where there is no such file: told with the directory's other files, if need be."""
        try:
            file = places.open_file(self._segment.index_path(kind))
        except (FileNotFoundError, NoRegularFileError):
            return None
        return file.read(file.size, 0)

    def _find(self, kind: Kind, position: int, offset: int | None, detail: str) -> None:
        self._findings.append(Finding(kind, position, offset, detail))

    def _fault(self, found: Finding) -> Fault:
        one = self._segment
        place = (one.log_dir, one.topic, one.partition, one.path)
        return Fault(*place, found.position, found.offset, found.kind.value, found.detail)
