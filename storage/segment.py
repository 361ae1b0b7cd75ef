"""One segment of a log: a `.log` file with its indexes.

Owns the bytes of a run of offsets, where they lie and what their largest timestamp is. Must not
know the log's other segments, what its offsets mean (high watermark, log start) or producers.

Indexes are only hints: what they say is held against the batch that they point to, and a broken
one is rebuilt from the segment.
"""

import logging
import os
from array import array
from bisect import bisect_right
from typing import Final, NamedTuple

from storage.batch_scan import FoundBatch, find_batch, scan_headers
from storage.environment import Environment
from storage.errors import CorruptIndexError, SegmentOverflowError
from storage.files import Buffer, Descriptor, FileSlice
from storage.log_config import INT32_MAX, LogConfig
from storage.records.batches import Batch, iter_records
from storage.records.errors import CorruptRecordError
from storage.records.layout import NO_TIMESTAMP
from storage.segment_files import LOG_KIND, SEGMENT_KINDS, SegmentSizes, segment_path
from storage.segment_indexes import SegmentIndexes

_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT

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


class Segment:
    """A `.log` file and its indexes."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_descriptor",
        "_environment",
        "_first_timestamp",
        "_index_interval_bytes",
        "_is_name_synced",
        "_largest",
        "_tail_offsets",
        "_tail_positions",
        "base_offset",
        "created_ms",
        "deleted",
        "directory",
        "indexes",
        "recently_used",
        "roll_jitter_ms",
        "size",
        "suffix",
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
        self._environment = environment
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.size = sizes.log
        self.created_ms = environment.clock()
        self.roll_jitter_ms = roll_jitter_ms
        self.deleted = False
        self.recently_used = False
        # Whether the directory's entry for the file is on the disk, not only the file.
        self._is_name_synced = False
        self._index_interval_bytes = config.index_interval_bytes
        self._bytes_since_index_entry = 0
        self._descriptor: Descriptor | None = None
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
        files = environment.files
        descriptor = files.open(segment.path(LOG_KIND), _OPEN_FLAGS | os.O_TRUNC)
        if config.preallocate:
            files.truncate(descriptor.fileno(), config.segment_bytes)
        segment._hold(descriptor)
        segment._largest = (NO_TIMESTAMP, base_offset)
        files.unlink(segment.path("txnindex"))
        segment.indexes.reset()
        return segment

    def path(self, kind: str) -> str:
        return segment_path(self.directory, self.base_offset, kind, self.suffix)

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
        index_due = self._bytes_since_index_entry > self._index_interval_bytes
        if index_due:
            # Before the write, so that a full disk is met while nothing has changed yet.
            self.indexes.reserve()
        self.recently_used = True
        descriptor = self._descriptor or self._open()
        try:
            written = self._environment.files.pwrite(descriptor.fileno(), records, position)
            if written != length:
                self._write_rest(descriptor, records, written)
        except OSError:
            # Making a file shorter needs no disk space.
            self._environment.files.truncate(descriptor.fileno(), position)
            raise
        self.size = position + length
        if position == 0:
            self._first_timestamp = max_timestamp
        largest = self._largest or self.largest
        if max_timestamp > largest[0]:
            largest = self._largest = (max_timestamp, offset_of_max_timestamp)
        if index_due:
            self.indexes.append(last_offset, position, largest)
            self._bytes_since_index_entry = 0
            self._forget_tail()
        self._bytes_since_index_entry += length
        self._tail_offsets.append(first_offset)
        self._tail_positions.append(position)

    def _write_rest(self, descriptor: Descriptor, records: Buffer, written: int) -> None:
        view = memoryview(records)
        while written < len(view):
            written += self._environment.files.pwrite(
                descriptor.fileno(), view[written:], self.size + written
            )

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
            headers = scan_headers(self.descriptor(), 0, self.size)
            self._first_timestamp = next((h.max_timestamp for _, h in headers), None)
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

    @property
    def modified_ms(self) -> int:
        return self._environment.files.modified_ms(self.path(LOG_KIND))

    def _find_largest(self) -> tuple[int, int]:
        """The last time index entry, if it is right, or a larger timestamp behind it."""
        largest = self.indexes.times.last_entry
        start = self._position_of_time_entry(*largest)
        if start == 0:
            largest = (NO_TIMESTAMP, self.base_offset)
        for _, header in scan_headers(self.descriptor(), start, self.size):
            if header.max_timestamp > largest[0]:
                largest = (header.max_timestamp, header.last_offset)
        return largest

    def _position_of_time_entry(self, timestamp: int, offset: int) -> int:
        """Where the batch of a time index entry lies; 0, the start, if the entry is wrong."""
        if timestamp == NO_TIMESTAMP:
            return 0
        found = self.find(offset)
        if found is not None:
            for _, header in scan_headers(self.descriptor(), found.position, self.size):
                if header.max_timestamp == timestamp:
                    return found.position
                break
        logger.warning("%s: an entry of the time index (%d) is wrong", self, timestamp)
        return 0

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
            logger.warning("%s: the offset index is rebuilt: %s", self, error)
            self.rebuild_offset_index()
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
        start = self._position_of_time_entry(*self.indexes.times.lookup(timestamp))
        descriptor = self.descriptor()
        for position, header in scan_headers(descriptor, start, self.size):
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
        for position, header in scan_headers(self.descriptor(), end, self.size):
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
        self._largest = None
        return dropped

    def truncate_bytes(self, size: int) -> None:
        """Cut the `.log` file; the indexes are the caller's concern."""
        self._environment.files.truncate(self.descriptor().fileno(), size)
        self.size = size
        self._forget_tail()
        if size == 0:
            self.created_ms = self._environment.clock()
            self._first_timestamp = None

    def rebuild_offset_index(self) -> None:
        """Make the offset index anew from the batches' headers."""
        index = self.indexes.offsets
        index.reset()
        last_indexed = 0
        for position, header in scan_headers(self.descriptor(), 0, self.size):
            if position - last_indexed > self._index_interval_bytes:
                index.reserve()
                index.append(header.last_offset, position)
                last_indexed = position
        self._forget_tail()

    def become_inactive(self) -> None:
        """Add the last time index entry and cut the files to their contents."""
        self.indexes.append_last_time(self.largest)
        self.indexes.trim()
        self._environment.files.truncate(self.descriptor().fileno(), self.size)
        self._forget_tail()

    def sync(self) -> None:
        """Bring all files to the disk; may run in a thread while the segment is in use.

        The files may be renamed meanwhile, or given up altogether.
        """
        while True:
            directory = self.directory
            try:
                self._sync_files()
            except FileNotFoundError:
                if self.deleted:
                    return
                if directory == self.directory:
                    raise
            else:
                return

    def _sync_files(self) -> None:
        files = self._environment.files
        descriptor = self._descriptor or files.open(self.path(LOG_KIND), os.O_RDWR)
        files.sync(descriptor.fileno())
        self.indexes.sync()
        if not self._is_name_synced:
            files.sync_directory(self.directory)
            self._is_name_synced = True

    def rename(self, directory: str, suffix: str) -> None:
        """Move the files to another suffix, or take note that their directory was renamed."""
        if suffix != self.suffix:
            for kind in SEGMENT_KINDS:
                if kind != "txnindex" or self.indexes.transactions.exists:
                    target = segment_path(directory, self.base_offset, kind, suffix)
                    self._environment.files.replace(self.path(kind), target)
        self.directory = directory
        self.suffix = suffix
        self.indexes.renamed(directory, suffix)

    # Descriptors

    def descriptor(self) -> Descriptor:
        self.recently_used = True
        return self._descriptor or self._open()

    def release(self) -> None:
        """Drop the descriptor; slices that were handed out keep theirs."""
        if self._descriptor is not None:
            self._descriptor = None
            self._environment.open_files.closed(self)

    def release_all(self) -> None:
        """Let go of all files without touching them."""
        self.release()
        self.indexes.release()

    def forget_open_files(self) -> None:
        """No longer count the descriptors; they are closed with the last reference to them."""
        for holder in (self, self.indexes.offsets, self.indexes.times):
            self._environment.open_files.closed(holder)

    def _open(self) -> Descriptor:
        return self._hold(self._environment.files.open(self.path(LOG_KIND), os.O_RDWR))

    def _hold(self, descriptor: Descriptor) -> Descriptor:
        self._descriptor = descriptor
        self._environment.open_files.opened(self)
        return descriptor

    def _forget_tail(self) -> None:
        del self._tail_offsets[:]
        del self._tail_positions[:]

    def __repr__(self) -> str:
        return f"Segment({self.path(LOG_KIND)}, {self.size} bytes)"
