"""Brings a log's files into a state from which the log can go on.

Owns what happens between "a directory with files" and "a list of sound segments": leftovers of
interrupted replacements, missing or broken indexes, and a torn tail after a crash. Must not
know offsets beyond those of the segments themselves (high watermark and the like).

After a clean stop nothing is read but file sizes. After a crash the segments from the recovery
point on are read whole, checksums included, and cut where the first damage begins.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from storage.batch_scan import scan_batches
from storage.environment import Environment
from storage.errors import CorruptIndexError, SegmentOverflowError
from storage.log_config import INT32_MAX, INT64_MAX, LogConfig
from storage.records.errors import CorruptRecordError
from storage.records.layout import NO_TIMESTAMP
from storage.replacement import discard_segments, replace_segments
from storage.segment import Segment
from storage.segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_KINDS,
    LOG_KIND,
    SWAP_SUFFIX,
    FileName,
    SegmentSizes,
    parse_file_name,
    segment_path,
)
from storage.segments import Segments

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadedSegments:
    """What recovery hands to the log."""

    segments: Segments
    end_offset: int


@dataclass(slots=True)
class SegmentLoader:
    """Loads the segments of one directory."""

    environment: Environment
    directory: Path
    config: LogConfig
    start_offset: int
    recovery_point: int

    def load(self, *, clean: bool) -> LoadedSegments:
        """Open all segments; `clean` says that the last stop left nothing to check."""
        self.environment.files.make_directory(self.directory)
        swaps = self._remove_leftovers()
        segments = Segments(self._open_segments())
        self._complete_swaps(segments, swaps)
        if not clean:
            self._recover_unflushed(segments)
        end_offset = segments.active.next_offset() if len(segments) else self.start_offset
        if end_offset < self.start_offset:
            logger.warning(
                "%s ends at %d, before its start offset %d: its segments are dropped",
                self.directory,
                end_offset,
                self.start_offset,
            )
            self._discard(segments, list(segments))
            end_offset = self.start_offset
        if not len(segments):
            segments.add(
                Segment.create(
                    self.environment, str(self.directory), self.start_offset, self.config
                )
            )
        return LoadedSegments(segments, end_offset)

    # Leftovers of interrupted replacements

    def _remove_leftovers(self) -> list[int]:
        """Remove temporary files; returns the base offsets of segments that wait as .swap."""
        cleaned: list[str] = []
        first_cleaned = INT64_MAX
        swapped_logs: set[int] = set()
        swapped: set[int] = set()
        for parsed in self._list_files():
            path = segment_path(str(self.directory), *parsed)
            if parsed.suffix == DELETED_SUFFIX:
                self.environment.files.unlink(path)
            elif parsed.suffix == CLEANED_SUFFIX:
                cleaned.append(path)
                first_cleaned = min(parsed.offset, first_cleaned)
            elif parsed.suffix == SWAP_SUFFIX:
                swapped.add(parsed.offset)
                if parsed.kind == LOG_KIND:
                    swapped_logs.add(parsed.offset)
        # The old indexes of a segment that is being replaced are worth nothing in any case.
        for offset in swapped:
            self._remove_indexes(offset, "")
        valid = {offset for offset in swapped_logs if offset < first_cleaned}
        for offset in swapped_logs - valid:
            self._remove_indexes(offset, SWAP_SUFFIX)
            self._remove(FileName(offset, LOG_KIND, SWAP_SUFFIX))
        for path in cleaned:
            self.environment.files.unlink(path)
        return sorted(valid)

    def _complete_swaps(self, segments: Segments, swaps: Iterable[int]) -> None:
        for base_offset in swaps:
            logger.info("%s: completing the replacement at %d", self.directory, base_offset)
            swap = self._open_segment(self._list_files(), base_offset, SWAP_SUFFIX)
            self._rebuild(swap)
            old = [
                segment
                for segment in segments.between(base_offset, swap.next_offset())
                if segment.next_offset() > base_offset
            ]
            replace_segments(
                self.environment, segments, [swap], old, self.config.file_delete_delay_ms
            )

    # Opening

    def _open_segments(self) -> list[Segment]:
        files = self._list_files()
        bases = sorted(name.offset for name in files if name[1:] == (LOG_KIND, ""))
        known = set(bases)
        for name in files:
            if name.kind in INDEX_KINDS and not name.suffix and name.offset not in known:
                logger.warning(
                    "%s: removing %s, an index without its segment", self.directory, name
                )
                self._remove(name)
        return [self._open_segment(files, base) for base in bases]

    def _open_segment(
        self, files: dict[FileName, int], base_offset: int, suffix: str = ""
    ) -> Segment:
        sizes = SegmentSizes(
            files[FileName(base_offset, LOG_KIND, suffix)],
            files.get(FileName(base_offset, "index", suffix), 0),
            files.get(FileName(base_offset, "timeindex", suffix), 0),
        )
        segment = Segment(
            self.environment, str(self.directory), base_offset, self.config, sizes, suffix
        )
        if suffix:
            return segment
        try:
            if FileName(base_offset, "index", suffix) not in files:
                raise CorruptIndexError(f"{segment.path('index')} is missing")
            segment.offset_index.check(segment.size, sizes.offset_index)
            segment.time_index.check(sizes.time_index)
        except CorruptIndexError as error:
            logger.warning("%s: the segment is checked and its indexes are rebuilt", error)
            self._rebuild(segment)
        return segment

    # Damage

    def _recover_unflushed(self, segments: Segments) -> None:
        unflushed = segments.between(self.recovery_point, INT64_MAX)
        for number, segment in enumerate(unflushed, start=1):
            if self._rebuild(segment) > 0:
                self._discard(segments, unflushed[number:])
                return

    def _rebuild(self, segment: Segment) -> int:
        """Check every batch, rebuild the indexes, cut at the first damage; bytes cut."""
        segment.offset_index.reset()
        segment.time_index.reset()
        segment.largest = (NO_TIMESTAMP, segment.base_offset)
        valid_bytes = 0
        last_indexed = 0
        try:
            for batch in scan_batches(segment.descriptor(), 0, segment.size):
                batch.check()
                header = batch.batch.header
                if not 0 <= header.last_offset - segment.base_offset <= INT32_MAX:
                    raise SegmentOverflowError(segment.base_offset, header.last_offset)
                if header.max_timestamp > segment.largest[0]:
                    segment.largest = (header.max_timestamp, header.last_offset)
                if valid_bytes - last_indexed > self.config.index_interval_bytes:
                    segment.offset_index.reserve()
                    segment.offset_index.append(header.last_offset, valid_bytes)
                    segment.time_index.reserve()
                    segment.time_index.append(*segment.largest)
                    last_indexed = valid_bytes
                valid_bytes += header.size_in_bytes
        except (CorruptRecordError, CorruptIndexError, SegmentOverflowError) as error:
            logger.warning(
                "%s is damaged from byte %d on: %s", segment.path("log"), valid_bytes, error
            )
        truncated = segment.size - valid_bytes
        if truncated:
            logger.warning("%s: %d bytes are cut off", segment.path("log"), truncated)
            segment.truncate_bytes(valid_bytes)
        segment.become_inactive()
        return truncated

    def _discard(self, segments: Segments, discarded: list[Segment]) -> None:
        segments.remove(discarded)
        discard_segments(self.environment, discarded, self.config.file_delete_delay_ms)

    # Files

    def _list_files(self) -> dict[FileName, int]:
        """The files of segments and snapshots, with their sizes."""
        listing: dict[FileName, int] = {}
        with self.environment.files.scan(self.directory) as entries:
            for entry in entries:
                name = parse_file_name(entry.name)
                if name is not None:
                    listing[name] = entry.stat().st_size
        return listing

    def _remove(self, name: FileName) -> None:
        self.environment.files.unlink(segment_path(str(self.directory), *name))

    def _remove_indexes(self, offset: int, suffix: str) -> None:
        for kind in INDEX_KINDS:
            self._remove(FileName(offset, kind, suffix))
