"""One segment of a log: a `.log` file with its indexes.

Owns the bytes of a run of offsets, where they lie and what their largest timestamp is. Must not
know the log's other segments, what its offsets mean (high watermark, log start) or producers.

Indexes are only hints: what they say is held against the batch that they point to, and a broken
one is rebuilt from the segment.
"""

import logging
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from storage.batch_scan import FoundBatch, find_batch, scan_headers
from storage.environment import Environment
from storage.errors import CorruptIndexError, SegmentOverflowError
from storage.files import Buffer, FileSlice
from storage.log_config import INT32_MAX, LogConfig
from storage.log_file import LogFile
from storage.records.batches import Batch, iter_records
from storage.records.errors import CorruptRecordError
from storage.records.layout import NO_TIMESTAMP, BatchHeader
from storage.segment_files import LOG_KIND, SEGMENT_KINDS, SegmentSizes, segment_path
from storage.segment_indexes import SegmentIndexes

logger = logging.getLogger(__name__)


class SegmentRead(NamedTuple):
    """Bytes found in a segment; `first_batch_whole` is False if a size limit cut even that one."""

    slice: FileSlice
    first_batch_whole: bool


class TimestampOffset(NamedTuple):
    """A record found by its timestamp, with the leader epoch of its batch (-1 if unknown)."""

    timestamp: int
    offset: int
    leader_epoch: int


class Segment(LogFile):
    """A `.log` file and its indexes."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_first_timestamp",
        "_index_interval_bytes",
        "_largest",
        "_tail_offsets",
        "_tail_positions",
        "created_ms",
        "deleted",
        "indexes",
        "roll_jitter_ms",
    )

    def __init__(
        self,
        environment: Environment,
        directory: str,
        base_offset: int,
        config: LogConfig,
        sizes: SegmentSizes,
        suffix: str = "",
        roll_jitter_ms: int = 0,
    ) -> None:
        """Take the files as they are: `sizes` says how long each of them is."""
        super().__init__(environment, directory, base_offset, suffix, sizes.log)
        self.created_ms = environment.clock()
        self.roll_jitter_ms = roll_jitter_ms
        # No longer part of a log; a thread that flushes it may stop.
        self.deleted = False
        self._index_interval_bytes = config.index_interval_bytes
        self._bytes_since_index_entry = 0
        # Timestamp of the first batch, by which the segment's age is reckoned, once known.
        self._first_timestamp: int | None = None
        # Largest timestamp and the last offset of its batch, once known.
        self._largest: tuple[int, int] | None = None
        # First offset and position of each append since the last index entry: reads at the tail
        # of the log, most reads of all, find their place here without touching a file.
        self._tail_offsets = array("q")
        self._tail_positions = array("q")
        self.indexes = SegmentIndexes(environment, directory, base_offset, suffix, config, sizes)

    @classmethod
    def create(
        cls,
        environment: Environment,
        directory: str,
        base_offset: int,
        config: LogConfig,
        suffix: str = "",
        roll_jitter_ms: int = 0,
    ) -> "Segment":
        """Make a new, empty segment; files that lie in the way are overwritten."""
        sizes = SegmentSizes(0, 0, 0, 0)
        segment = cls(environment, directory, base_offset, config, sizes, suffix, roll_jitter_ms)
        segment.create_file(config.segment_bytes if config.preallocate else 0)
        segment._largest = (NO_TIMESTAMP, base_offset)
        environment.files.unlink(segment.path("txnindex"))
        segment.indexes.create()
        return segment

    # Appending

    def append(
        self,
        records: Buffer,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
    ) -> None:
        """Write whole batches at the end; either all of them are there afterwards, or none."""
        if not 0 <= last_offset - self.base_offset <= INT32_MAX:
            raise SegmentOverflowError(self.base_offset, last_offset)
        position = self.size
        length = len(records)
        # Before the write: it may have to be read, and an error is best met with nothing changed.
        largest = self._largest or self.largest
        self.write(records)
        if max_timestamp > largest[0]:
            largest = (max_timestamp, offset_of_max_timestamp)
        if self._bytes_since_index_entry > self._index_interval_bytes:
            try:
                self.indexes.append(last_offset, position, largest)
            except OSError:
                self.cut(position)
                raise
            self._bytes_since_index_entry = 0
            self._forget_tail()
        self._largest = largest
        if position == 0:
            self._first_timestamp = max_timestamp
        self._bytes_since_index_entry += length
        self._tail_offsets.append(first_offset)
        self._tail_positions.append(position)

    def should_roll(
        self, config: LogConfig, length: int, max_timestamp: int, last_offset: int, now_ms: int
    ) -> bool:
        """Whether an append of `length` bytes belongs into a new segment."""
        size = self.size
        if (
            size + length > config.segment_bytes
            or not 0 <= last_offset - self.base_offset <= INT32_MAX
            or self.indexes.are_full
        ):
            return True
        if size == 0:
            return False
        first_timestamp = self._first_timestamp
        if first_timestamp is None:
            first_timestamp = self.first_timestamp
        if first_timestamp >= 0:
            age_ms = max_timestamp - first_timestamp
        else:
            age_ms = now_ms - self.created_ms
        return age_ms > config.roll_ms - self.roll_jitter_ms

    # Timestamps

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch; -1 if there is none."""
        if self._first_timestamp is None:
            self._first_timestamp = next((h.max_timestamp for _, h in self._headers()), None)
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    @property
    def largest(self) -> tuple[int, int]:
        """Largest timestamp and the last offset of the batch that has it; (-1, base) if none."""
        if self._largest is None:
            self._largest = self._find_largest()
        return self._largest

    @largest.setter
    def largest(self, largest: tuple[int, int]) -> None:
        self._largest = largest

    @property
    def largest_timestamp(self) -> int:
        """For retention: the file's own time where records have no timestamps."""
        timestamp = self.largest[0]
        return timestamp if timestamp >= 0 else self.modified_ms

    def _find_largest(self) -> tuple[int, int]:
        """The last time index entry: a segment that is closed or was checked ends with it."""
        if not self.size:
            return NO_TIMESTAMP, self.base_offset
        last_entry = self.indexes.times.last_entry
        if self._is_right(*last_entry):
            return last_entry
        self._rebuild_indexes("the last entry of the time index is wrong")
        return self.largest

    def _is_right(self, timestamp: int, offset: int) -> bool:
        """Whether a time index entry agrees with the batch that it names."""
        if timestamp == NO_TIMESTAMP:
            return self.first_timestamp == NO_TIMESTAMP
        found = self.find(offset)
        if found is None:
            return False
        header = next((h for _, h in self._headers(found.position)), None)
        return header is not None and header.max_timestamp == timestamp

    def _headers(self, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        return scan_headers(self.descriptor(), start, self.size)

    # Reading

    def find(self, offset: int) -> FoundBatch | None:
        """The batch that contains `offset`, or the next one if compaction has removed it."""
        tail = self._tail_offsets
        if tail and offset >= tail[0]:
            start = self._tail_positions[bisect_right(tail, offset) - 1]
            return find_batch(self.descriptor(), offset, start, self.size)
        try:
            return self._find_by_index(offset)
        except (CorruptIndexError, CorruptRecordError) as error:
            self._rebuild_indexes(str(error))
            return self._find_by_index(offset)

    def _find_by_index(self, offset: int) -> FoundBatch | None:
        indexed_offset, start = self.indexes.offsets.lookup(offset)
        return find_batch(self.descriptor(), offset, start, self.size, indexed_offset)

    def position_of_append(self, offset: int) -> int | None:
        """Where `offset` begins, if it was the first of a recent append; no file is touched."""
        tail = self._tail_offsets
        if tail and offset >= tail[0]:
            slot = bisect_right(tail, offset) - 1
            if tail[slot] == offset:
                return self._tail_positions[slot]
        return None

    def read(
        self, offset: int, max_bytes: int, end: int, minimum_one_batch: bool
    ) -> SegmentRead | None:
        """Up to `max_bytes` from the batch with `offset` to position `end`; None if past all."""
        position = self.position_of_append(offset)
        if position is not None and end - position <= max_bytes:
            return SegmentRead(FileSlice(self.descriptor(), position, end - position), True)
        found = self.find(offset)
        if found is None:
            return None
        limit = max(max_bytes, found.size) if minimum_one_batch else max_bytes
        length = max(0, min(limit, end - found.position))
        whole = limit >= found.size
        return SegmentRead(FileSlice(self.descriptor(), found.position, length), whole)

    def find_timestamp(self, timestamp: int, start_offset: int) -> TimestampOffset | None:
        """The first record at or after `start_offset` with at least this timestamp."""
        entry = self.indexes.times.lookup(timestamp)
        if entry[0] != NO_TIMESTAMP and not self._is_right(*entry):
            self._rebuild_indexes("an entry of the time index is wrong")
            entry = self.indexes.times.lookup(timestamp)
        found = self.find(entry[1])
        if found is None:
            return None
        descriptor = self.descriptor()
        for position, header in self._headers(found.position):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            data = memoryview(descriptor.read(header.size_in_bytes, position))
            for record in iter_records(Batch(header, data)):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampOffset(
                        record.timestamp, record.offset, header.partition_leader_epoch
                    )
        return None

    def next_offset(self) -> int:
        """The offset after the last batch; only what follows the last index entry is read."""
        next_offset = self.base_offset
        found = self.find(self.indexes.offsets.last_offset)
        end = 0 if found is None else found.position
        for position, header in self._headers(end):
            next_offset = header.next_offset
            end = position + header.size_in_bytes
        if end != self.size:
            raise CorruptRecordError(f"{self} has {self.size - end} bytes that are no batch")
        return next_offset

    # Changing

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that contains `offset` and all that follow; returns bytes dropped."""
        found = self.find(offset)
        self.indexes.truncate_to(offset)
        dropped = 0
        if found is not None:
            dropped = self.size - found.position
            self.truncate_bytes(found.position)
        self._bytes_since_index_entry = 0
        self._find_largest_left()
        return dropped

    def _find_largest_left(self) -> None:
        """After a cut: the last time index entry that is left, or a larger timestamp behind it."""
        largest = self.indexes.times.last_entry
        found = self.find(largest[1])
        for _, header in self._headers(0 if found is None else found.position):
            if header.max_timestamp > largest[0]:
                largest = (header.max_timestamp, header.last_offset)
        self._largest = largest

    def truncate_bytes(self, size: int) -> None:
        """Cut the `.log` file; the indexes are the caller's concern."""
        self.cut(size)
        self._forget_tail()
        if size == 0:
            self.created_ms = self._environment.clock()
            self._first_timestamp = None

    def _rebuild_indexes(self, reason: str) -> None:
        """Make offset and time index anew from the batches' headers."""
        logger.warning("%s: its indexes are rebuilt: %s", self, reason)
        self.indexes.reset_positions()
        self._forget_tail()
        largest = (NO_TIMESTAMP, self.base_offset)
        last_indexed = 0
        for position, header in self._headers():
            if header.max_timestamp > largest[0]:
                largest = (header.max_timestamp, header.last_offset)
            if position - last_indexed > self._index_interval_bytes:
                self.indexes.append(header.last_offset, position, largest)
                last_indexed = position
        self.indexes.append_last_time(largest)
        self._largest = largest

    def complete_time_index(self) -> None:
        """Add the last entry of the time index once more, where a crash may have taken it."""
        self._find_largest_left()
        self.indexes.append_last_time(self.largest)
        self.indexes.trim()

    def become_inactive(self) -> None:
        """Add the last time index entry and cut the files to their contents."""
        self.indexes.append_last_time(self.largest)
        self.indexes.trim()
        if self._is_preallocated:
            self.cut(self.size)
        self._forget_tail()

    def sync(self) -> None:
        """Bring all files to the disk; may run in a thread while the segment is in use.

        They may be given up meanwhile. Where their directory is renamed, FileNotFoundError is
        raised, and the log tries again.
        """
        try:
            self.sync_file()
            self.indexes.sync()
        except FileNotFoundError:
            if not self.deleted:
                raise

    def rename(self, directory: str, suffix: str) -> None:
        """Move the files to another suffix, or take note that their directory was renamed."""
        if suffix != self.suffix:
            files = self._environment.files
            for kind in SEGMENT_KINDS:
                source = self.path(kind)
                # A missing index is no loss; that of transactions seldom exists.
                if kind == LOG_KIND or files.exists(source):
                    target = segment_path(directory, self.base_offset, kind, suffix)
                    files.replace(source, target)
        self.directory = directory
        self.suffix = suffix
        self.indexes.renamed(directory, suffix)

    def release_all(self) -> None:
        """Let go of all files without touching them."""
        self.release()
        self.indexes.release()

    def _forget_tail(self) -> None:
        del self._tail_offsets[:]
        del self._tail_positions[:]
