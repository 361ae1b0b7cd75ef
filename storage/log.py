"""A partition's log: an ordered list of segments, and the offsets that matter in it.

Owns append, read and the offsets (start, end, high watermark, recovery point). Plain synchronous
code for one thread; only `flush` may be called from another one meanwhile. Must not know
topics' other partitions, replication or the wire.
"""

import random
from pathlib import Path
from threading import Lock
from typing import NamedTuple, NoReturn

from storage.append_check import check_batches
from storage.append_info import AppendInfo, AppendOrigin, ReadIsolation, empty_append
from storage.environment import Environment
from storage.errors import (
    LogDirectoryError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordBatchTooLargeError,
    UnexpectedAppendOffsetError,
)
from storage.files import EMPTY_SLICE, FileSlice
from storage.log_config import LogConfig
from storage.records.layout import (
    NO_TIMESTAMP,
    BatchHeader,
    WritableBuffer,
    set_base_offset,
    set_leader_epoch,
)
from storage.recovery import SegmentLoader
from storage.segment import Segment, TimestampOffset
from storage.segment_files import parse_directory_name
from storage.segments import Segments


class LogRead(NamedTuple):
    """What a read found, and the log's offsets as they were at that moment."""

    slice: FileSlice
    start_offset: int
    end_offset: int
    high_watermark: int
    last_stable_offset: int
    first_batch_whole: bool = True


class Log:
    """One partition in one log directory."""

    def __init__(
        self,
        environment: Environment,
        directory: Path,
        config: LogConfig,
        *,
        start_offset: int = 0,
        recovery_point: int = 0,
        clean: bool = False,
    ) -> None:
        """Open the log in a directory, creating and repairing what is needed."""
        self._environment = environment
        self._clock = environment.clock
        self.directory = directory
        self.topic, self.partition, _ = parse_directory_name(directory)
        self.config = config
        loaded = SegmentLoader(environment, directory, config, start_offset, recovery_point).load(
            clean=clean
        )
        self._segments: Segments = loaded.segments
        self.end_offset = loaded.end_offset
        self.start_offset = max(start_offset, self._segments.first.base_offset)
        self.high_watermark = self.start_offset
        # All before this offset is on the disk for sure.
        self.recovery_point = self.end_offset
        self._flush_lock = Lock()
        self._truncations = 0
        self.last_flush_ms = self._clock()
        # Position of the high watermark or last stable offset in its segment, once looked up.
        self._limit_position: tuple[int, int, int] | None = None
        self.release_files()

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    @property
    def size_in_bytes(self) -> int:
        return self._segments.size_in_bytes

    @property
    def segments(self) -> list[Segment]:
        return list(self._segments)

    # Appending

    def append_as_leader(
        self,
        records: WritableBuffer,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Assign offsets to the batches, in place, and write them."""
        summary = check_batches(records, self.config.max_message_bytes)
        if not summary.headers:
            return empty_append(self.start_offset)
        offset = first_offset = self.end_offset
        position = 0
        for header in summary.headers:
            set_base_offset(records, offset, position)
            set_leader_epoch(records, leader_epoch, position)
            offset += header.last_offset_delta + 1
            position += header.size_in_bytes
        return self._append(
            records,
            summary.headers,
            first_offset,
            offset - 1,
            summary.max_timestamp,
            offset - 1,
        )

    def append_as_follower(self, records: WritableBuffer) -> AppendInfo:
        """Write batches with the offsets that the leader gave them."""
        summary = check_batches(records, self.config.max_message_bytes)
        headers = summary.headers
        if not headers:
            return empty_append(self.start_offset)
        if not summary.is_growing:
            raise OffsetsOutOfOrderError(
                f"Offsets of the batches appended to {self.directory.name} do not grow"
            )
        if headers[0].base_offset < self.end_offset:
            raise UnexpectedAppendOffsetError(
                f"Append to {self.directory.name} at offset {headers[0].base_offset}, below the"
                f" end of the log, {self.end_offset}",
                headers[0].base_offset,
                summary.last_offset,
            )
        if summary.valid_bytes < len(records):
            records = memoryview(records)[: summary.valid_bytes]
        return self._append(
            records,
            headers,
            headers[0].base_offset,
            summary.last_offset,
            summary.max_timestamp,
            summary.offset_of_max_timestamp,
        )

    def _append(
        self,
        records: WritableBuffer,
        headers: list[BatchHeader],
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
    ) -> AppendInfo:
        length = len(records)
        config = self.config
        if length > config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"{length} bytes do not fit into a segment of {config.segment_bytes} bytes"
            )
        try:
            segment = self._segments.active
            if segment.should_roll(config, length, max_timestamp, last_offset, self._clock()):
                segment = self.roll(first_offset)
            segment.append(
                records, first_offset, last_offset, max_timestamp, offset_of_max_timestamp
            )
        except OSError as error:
            self._fail(error)
        self.end_offset = last_offset + 1
        if self.end_offset - self.recovery_point >= config.flush_messages:
            self._environment.on_flush_due(self)
        return AppendInfo(
            first_offset, last_offset, max_timestamp, NO_TIMESTAMP, self.start_offset, length
        )

    def roll(self, next_offset: int | None = None) -> Segment:
        """Close the active segment for appends and start a new one."""
        base_offset = max(next_offset or 0, self.end_offset)
        active = self._segments.active
        if active.base_offset == base_offset and active.size == 0:
            return active
        try:
            active.become_inactive()
            segment = Segment.create(
                self._environment,
                str(self.directory),
                base_offset,
                self.config,
                roll_jitter_ms=self._jitter(),
            )
        except OSError as error:
            self._fail(error)
        self._segments.add(segment)
        self._environment.on_roll(self)
        return segment

    def _jitter(self) -> int:
        limit = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return random.randrange(limit) if limit > 0 else 0

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: ReadIsolation = ReadIsolation.HIGH_WATERMARK,
        minimum_one_batch: bool = True,
    ) -> LogRead:
        """Bytes from the batch that contains `offset` on, as far as the reader may see."""
        end_offset = self.end_offset
        if not self.start_offset <= offset <= end_offset:
            raise OffsetOutOfRangeError(offset, self.start_offset, end_offset)
        if isolation is ReadIsolation.HIGH_WATERMARK:
            limit = self.high_watermark
        elif isolation is ReadIsolation.LOG_END:
            limit = end_offset
        else:
            limit = self.last_stable_offset
        if offset >= limit:
            return self._read_result(EMPTY_SLICE, True)
        try:
            segment = self._segments.floor(offset)
            while segment is not None:
                end = self._readable_end(segment, limit)
                found = segment.read(offset, max_bytes, end, minimum_one_batch)
                if found is not None:
                    return self._read_result(found.slice, found.first_batch_whole)
                segment = self._segments.higher(segment.base_offset)
        except OSError as error:
            self._fail(error)
        return self._read_result(EMPTY_SLICE, True)

    def _read_result(self, found: FileSlice, first_batch_whole: bool) -> LogRead:
        return LogRead(
            found,
            self.start_offset,
            self.end_offset,
            self.high_watermark,
            self.last_stable_offset,
            first_batch_whole,
        )

    def _readable_end(self, segment: Segment, limit: int) -> int:
        """The position in a segment at which offset `limit` begins, or the segment's end."""
        if limit >= self.end_offset:
            return segment.size
        following = self._segments.higher(segment.base_offset)
        if following is not None and following.base_offset <= limit:
            return segment.size
        known = self._limit_position
        if known is not None and known[:2] == (segment.base_offset, limit):
            return known[2]
        position = segment.position_of_append(limit)
        if position is None:
            found = segment.find(limit)
            position = segment.size if found is None else found.position
        self._limit_position = (segment.base_offset, limit, position)
        return position

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record whose timestamp is not below the given one; None if there is none."""
        try:
            for segment in self._segments:
                if segment.largest_timestamp >= timestamp:
                    return segment.find_timestamp(timestamp, self.start_offset)
        except OSError as error:
            self._fail(error)
        return None

    # Offsets

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, within the bounds of the log; returns what it is now."""
        self.high_watermark = min(max(offset, self.start_offset), self.end_offset)
        return self.high_watermark

    # Durability

    def flush(self, offset: int | None = None) -> None:
        """Bring all before `offset` (by default everything) to the disk.

        May run in a thread while the log is appended to, rolled, truncated or deleted.
        """
        with self._flush_lock:
            truncations = self._truncations
            target = self.end_offset if offset is None else offset
            if target <= self.recovery_point:
                return
            unflushed = self._segments.between(self.recovery_point, target)
        try:
            for segment in unflushed:
                segment.sync()
        except OSError as error:
            self._fail(error)
        with self._flush_lock:
            if self._truncations == truncations and target > self.recovery_point:
                self.recovery_point = target
                self.last_flush_ms = self._clock()

    def close(self) -> None:
        """Cut the indexes to size and let go of all files; `flush` comes before it."""
        try:
            self._segments.active.become_inactive()
        except OSError as error:
            self._fail(error)
        finally:
            self.release_files()

    def release_files(self) -> None:
        """Let go of all descriptors; they are opened again when needed."""
        for segment in self._segments:
            segment.release_all()

    def _fail(self, error: OSError) -> NoReturn:
        self._environment.on_failure(self.directory.parent, error)
        raise LogDirectoryError(
            self.directory.parent, f"I/O error in {self.directory.name}: {error}"
        ) from error
