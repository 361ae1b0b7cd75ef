"""Brings a log's files into a state from which the log can go on.

Owns what happens between "a directory with files" and "a list of sound segments": leftovers of
interrupted replacements, missing or broken indexes, and a torn tail after a crash. Must not
know the high watermark and the like, which are the log's.

After a clean stop nothing is read but file sizes and the ends of indexes. After a crash the
segments from the recovery point on are read whole, checksums included, and cut where the first
damage begins.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from storage.environment import Environment
from storage.errors import CorruptIndexError, SegmentOverflowError
from storage.files import unless_disk_is_full
from storage.leader_epochs import LeaderEpochs
from storage.log_config import INT64_MAX, LogConfig
from storage.producer_recovery import rebuild_producers
from storage.producer_snapshot import FrozenSnapshots, Snapshots
from storage.producer_state import ProducerState
from storage.records.errors import CorruptRecordError
from storage.replacement import discard_segments, replace_segments
from storage.segment import Segment
from storage.segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_KINDS,
    LOG_KIND,
    SNAPSHOT_KIND,
    SWAP_SUFFIX,
    FileName,
    SegmentSizes,
    parse_file_name,
    segment_path,
)
from storage.segment_recovery import recover_segment
from storage.segment_split import split_segment
from storage.segments import Segments

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadedSegments:
    """What recovery hands to the log."""

    segments: Segments
    end_offset: int
    producers: ProducerState


@dataclass(slots=True)
class SegmentLoader:
    """Loads the segments of one directory."""

    environment: Environment
    directory: Path
    config: LogConfig
    start_offset: int
    recovery_point: int
    epochs: LeaderEpochs
    _segments: Segments = field(default_factory=Segments)
    # The files of segments and snapshots with their sizes, as they were when last looked at.
    _files: dict[FileName, int] = field(default_factory=dict)
    _producers: ProducerState | None = None

    def load(self, *, clean: bool) -> LoadedSegments:
        """Open all segments; `clean` says that the last stop left nothing to check."""
        segments = self._segments
        self._list_files()
        swaps = self._remove_leftovers()
        self._splitting_overflows(lambda: self._open_segments(clean=clean))
        self._complete_swaps(swaps)
        if not clean:
            self._splitting_overflows(self._recover_unflushed)
        end_offset = self._end_of(segments.active) if len(segments) else self.start_offset
        if end_offset < self.start_offset:
            logger.warning(
                "%s ends at %d, before its start offset %d: its segments are dropped",
                self.directory,
                end_offset,
                self.start_offset,
            )
            self._discard(list(segments))
        if not len(segments):
            end_offset = self.start_offset
            segments.add(
                Segment.create(self.environment, str(self.directory), end_offset, self.config)
            )
        return LoadedSegments(segments, end_offset, self._producers_at(end_offset, clean=clean))

    def _producers_at(self, end_offset: int, *, clean: bool) -> ProducerState:
        """Those that recovery met, if it went to the end: it knows more of their last batches than
        a snapshot can hold, and a producer may send any of these again."""
        producers = self._producers
        if producers is None:
            return self._producer_state(self._listed_snapshots(is_synced=clean))
        if producers.end_offset != end_offset:
            return self._producer_state(producers.snapshots)
        producers.remove_expired(self.environment.clock())
        return producers

    # Leftovers of interrupted replacements

    def _remove_leftovers(self) -> list[int]:
        """Remove temporary files; returns the base offsets of segments that wait as .swap."""
        cleaned: list[FileName] = []
        swapped: set[int] = set()
        swapped_logs: set[int] = set()
        for name in list(self._files):
            if name.suffix == DELETED_SUFFIX:
                self._remove(name)
            elif name.suffix == CLEANED_SUFFIX:
                cleaned.append(name)
            elif name.suffix == SWAP_SUFFIX:
                swapped.add(name.offset)
                if name.kind == LOG_KIND:
                    swapped_logs.add(name.offset)
        # The old indexes of a segment that is being replaced are worth nothing in any case.
        for offset in swapped:
            self._remove_indexes(offset, "")
        first_cleaned = min((name.offset for name in cleaned), default=INT64_MAX)
        valid = {offset for offset in swapped_logs if offset < first_cleaned}
        for offset in swapped - valid:
            self._remove_indexes(offset, SWAP_SUFFIX)
            self._remove(FileName(offset, LOG_KIND, SWAP_SUFFIX))
        for name in cleaned:
            self._remove(name)
        return sorted(valid)

    def _complete_swaps(self, swaps: Iterable[int]) -> None:
        segments = self._segments
        for base_offset in swaps:
            logger.info("%s: completing the replacement at %d", self.directory, base_offset)
            swap = self._segment(base_offset, SWAP_SUFFIX)
            self._rebuild_indexes(swap)
            old = [
                segment
                for segment in segments.between(base_offset, swap.next_offset())
                if segment.next_offset() > base_offset
            ]
            replace_segments(
                self.environment, segments, [swap], old, self.config.file_delete_delay_ms
            )

    # Opening

    def _open_segments(self, *, clean: bool) -> None:
        bases = sorted(name.offset for name in self._files if name[1:] == (LOG_KIND, ""))
        known = set(bases)
        for name in list(self._files):
            if name.kind in INDEX_KINDS and not name.suffix and name.offset not in known:
                logger.warning("%s: removing %s, an index without segment", self.directory, name)
                self._remove(name)
        # What lies past the recovery point will be read whole after a crash in any case.
        checked_before = INT64_MAX
        if not clean:
            checked_before = max((b for b in bases if b <= self.recovery_point), default=0)
        self._segments.remove(list(self._segments))
        for base_offset in bases:
            segment = self._segment(base_offset)
            try:
                if base_offset < checked_before:
                    self._check_indexes(segment)
            except CorruptIndexError as error:
                logger.warning("%s: the segment is read and its indexes are rebuilt", error)
                self._rebuild_indexes(segment)
            self._segments.add(segment)

    def _segment(self, base_offset: int, suffix: str = "") -> Segment:
        sizes = SegmentSizes(
            self._files[FileName(base_offset, LOG_KIND, suffix)],
            *(self._files.get(FileName(base_offset, kind, suffix), 0) for kind in INDEX_KINDS),
        )
        return Segment(
            self.environment, str(self.directory), base_offset, self.config, sizes, suffix
        )

    def _check_indexes(self, segment: Segment) -> None:
        for kind in ("index", "timeindex"):
            if FileName(segment.base_offset, kind, "") not in self._files:
                raise CorruptIndexError(f"{segment.path(kind)} is missing")
        segment.indexes.check(segment.size)

    # Damage

    def _recover_unflushed(self) -> None:
        unflushed = self._segments.between(self.recovery_point, INT64_MAX)
        for segment in self._segments.between(self.recovery_point - 1, self.recovery_point):
            if segment not in unflushed:
                self._check_end(segment)
        for number, segment in enumerate(unflushed, start=1):
            if self._recover(segment) > 0:
                self._discard(unflushed[number:][::-1])
                return

    def _check_end(self, segment: Segment) -> None:
        """The last flushed segment may have been flushed before it was rolled: in full length if
        it was preallocated, and without the last entry of its time index."""
        if self.config.preallocate:
            self._end_of(segment)
        with unless_disk_is_full(f"The last time index entry of {segment}"):
            segment.complete_time_index()

    def _recover(self, segment: Segment) -> int:
        """Read a segment of the log's end, and cut it at the first damage; returns bytes cut."""
        if self._producers is None:
            self._producers = self._producer_state(self._snapshots)
        self._bring_to(self._producers, segment.base_offset)
        truncated = recover_segment(segment, self.config, self._producers, self.epochs)
        # So that the next segment's recovery, now or later, need not read this one again.
        with unless_disk_is_full(f"The snapshot after {segment}"):
            self._producers.take_snapshot()
        return truncated

    def _rebuild_indexes(self, segment: Segment) -> None:
        """Read a segment of the log's middle, whose snapshots and epochs are not in question."""
        producers = self._producer_state(FrozenSnapshots(self._snapshots))
        self._bring_to(producers, segment.base_offset)
        recover_segment(segment, self.config, producers, None)

    def _producer_state(self, snapshots: Snapshots) -> ProducerState:
        return ProducerState(snapshots, self.environment.producer_expiration_ms)

    def _bring_to(self, producers: ProducerState, offset: int) -> None:
        """Let the state be what it was at a segment's base offset."""
        now = self.environment.clock()
        rebuild_producers(producers, self._segments, self.start_offset, offset, now)

    @property
    def _snapshots(self) -> Snapshots:
        return self._listed_snapshots(is_synced=False)

    def _listed_snapshots(self, *, is_synced: bool) -> Snapshots:
        offsets = [name.offset for name in self._files if name.kind == SNAPSHOT_KIND]
        files = self.environment.files
        return Snapshots(files, str(self.directory), offsets, is_synced=is_synced)

    def _end_of(self, segment: Segment) -> int:
        """The offset after a segment's last batch; it is checked after all if its tail is none."""
        try:
            return segment.next_offset()
        except CorruptRecordError as error:
            logger.warning("%s: the segment is checked", error)
            self._recover(segment)
            return segment.next_offset()

    def _splitting_overflows(self, step: Callable[[], None]) -> None:
        """Take a step again after splitting a segment whose offsets do not fit its index."""
        while True:
            try:
                return step()
            except SegmentOverflowError as error:
                logger.warning("%s: the segment is split", error)
                self._list_files()
                segment = self._segment(error.base_offset)
                self._segments.add(segment)
                split_segment(self.environment, self._segments, segment, self.config)
                self._list_files()
                self._producers = None

    def _discard(self, discarded: list[Segment]) -> None:
        self._segments.remove(discarded)
        discard_segments(self.environment, discarded, self.config.file_delete_delay_ms)

    # Files

    def _list_files(self) -> None:
        self._files = {}
        with self.environment.files.scan(self.directory) as entries:
            for entry in entries:
                name = parse_file_name(entry.name)
                if name is not None:
                    self._files[name] = entry.stat().st_size

    def _remove(self, name: FileName) -> None:
        self.environment.files.unlink(segment_path(str(self.directory), *name))
        self._files.pop(name, None)

    def _remove_indexes(self, offset: int, suffix: str) -> None:
        for kind in INDEX_KINDS:
            self._remove(FileName(offset, kind, suffix))
