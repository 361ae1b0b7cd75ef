"""A partition's log: appends, and everything else that changes it.

Owns the order of steps in an append, rolling, truncation and closing. Plain synchronous code for
one thread; only `flush` may be called from another one meanwhile. Must not know replication,
other partitions or the wire.
"""

import random
from collections.abc import Sequence

from storage.append_info import AppendInfo, AppendOrigin, ReadIsolation, empty_append
from storage.errors import (
    OffsetOutOfRangeError,
    RecordBatchTooLargeError,
    UnexpectedAppendOffsetError,
)
from storage.log_config import INT32_MAX, LogConfig
from storage.log_reader import LogRead, LogReader
from storage.producer_entry import BatchSpan, CompletedTransaction, ProducerEntry
from storage.producer_state import CheckedProducers
from storage.records.layout import MAGIC_2, NO_PRODUCER_ID, Buffer, WritableBuffer
from storage.replacement import discard_segments, replace_segments
from storage.segment import Segment, TimestampOffset
from storage.txn_index import AbortedTransaction
from storage.validation import (
    RecordRules,
    ValidatedRecords,
    validate_for_follower,
    validate_for_leader,
)

__all__ = ["AppendInfo", "AppendOrigin", "Log", "LogRead", "ReadIsolation", "TimestampOffset"]


class Log(LogReader):
    """One partition in one log directory."""

    # Appending

    def append_as_leader(
        self,
        records: WritableBuffer,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Check the batches, give them offsets (in place where possible) and write them."""
        now = self._clock()
        validated = validate_for_leader(
            records, self.rules, self.end_offset, leader_epoch, now, origin
        )
        return self._append(validated, origin, now)

    def append_as_follower(self, records: Buffer) -> AppendInfo:
        """Write batches with the offsets that the leader gave them."""
        validated = validate_for_follower(records, INT32_MAX)
        if not validated.headers:
            return empty_append(self.start_offset)
        if validated.first_offset < self.end_offset:
            raise UnexpectedAppendOffsetError(
                f"Append to {self.name} at offset {validated.first_offset}, below the end of the"
                f" log, {self.end_offset}",
                validated.headers[0].base_offset,
                validated.last_offset,
            )
        return self._append(validated, AppendOrigin.REPLICATION, self._clock())

    def _append(self, validated: ValidatedRecords, origin: AppendOrigin, now: int) -> AppendInfo:
        data = validated.data
        if self.is_offline:
            self._check_online()
        headers = validated.headers
        first_offset = validated.first_offset
        last_offset = validated.last_offset
        max_timestamp = validated.max_timestamp
        length = len(data)
        if length > self.config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"{length} bytes do not fit into a segment of {self.config.segment_bytes} bytes"
            )
        header = headers[-1]
        producer: ProducerEntry | None = None
        producers: CheckedProducers | None = None
        if header.producer_id != NO_PRODUCER_ID or len(headers) > 1:
            producer = self.producers.in_order(headers)
            if producer is None:
                producers = self.producers.check(headers, data, origin)
                if producers.duplicate is not None:
                    return self._duplicate(producers.duplicate)
        try:
            segment = self.segments.active
            if segment.should_roll(self.config, length, max_timestamp, last_offset, now):
                segment = self._roll(self._base_for(validated))
            segment.append(
                data, first_offset, last_offset, max_timestamp, validated.offset_of_max_timestamp
            )
            self.end_offset = last_offset + 1
            if header.partition_leader_epoch != self.epochs.latest_epoch or len(headers) > 1:
                self._assign_epochs(validated)
            if producer is not None:
                producer.add_next(header)
            elif producers is not None:
                self.producers.apply(producers.appends)
                self._complete(segment, producers.completed)
        except OSError as error:
            self._fail(error)
        self.producers.end_offset = last_offset + 1
        if last_offset + 1 - self.recovery_point >= self.config.flush_messages:
            self.environment.on_flush_due(self)
        return AppendInfo(
            first_offset,
            last_offset,
            max_timestamp,
            validated.log_append_time,
            self.start_offset,
            length,
        )

    def _base_for(self, validated: ValidatedRecords) -> int:
        """Where a segment that begins with these records begins.

        The first offset inside a replicated wrapper of an old format is not known; it cannot be
        further from the last one than this.
        """
        if validated.headers[0].magic >= MAGIC_2:
            return validated.first_offset
        return validated.last_offset - INT32_MAX

    def _assign_epochs(self, validated: ValidatedRecords) -> None:
        for header in validated.headers:
            if header.magic < MAGIC_2:
                self.epochs.clear()
            elif header.partition_leader_epoch >= 0:
                self.epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _complete(self, segment: Segment, completed: Sequence[CompletedTransaction]) -> None:
        for transaction in completed:
            if transaction.is_aborted:
                segment.indexes.transactions.append(
                    AbortedTransaction(
                        transaction.producer_id,
                        transaction.first_offset,
                        transaction.last_offset,
                        self.producers.last_stable_offset_after(transaction),
                    )
                )
            self.producers.complete(transaction)

    def _duplicate(self, original: BatchSpan) -> AppendInfo:
        return AppendInfo(
            original.first_offset,
            original.last_offset,
            original.timestamp,
            original.timestamp,
            self.start_offset,
            0,
            is_duplicate=True,
        )

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """A new leader begins here; known before its first record is written."""
        if self.rules.magic >= MAGIC_2:
            try:
                self.epochs.assign(epoch, offset)
            except OSError as error:
                self._fail(error)

    # Rolling

    def roll(self) -> None:
        """Close the active segment for appends and start a new one."""
        try:
            self._roll(self.end_offset)
        except OSError as error:
            self._fail(error)

    def _roll(self, base_offset: int) -> Segment:
        base_offset = max(base_offset, self.end_offset)
        active = self.segments.active
        if active.base_offset == base_offset and active.size == 0:
            return active
        active.become_inactive()
        self.producers.end_offset = base_offset
        self.producers.take_snapshot()
        segment = self._add_segment(base_offset)
        self.environment.on_roll(self)
        return segment

    def _add_segment(self, base_offset: int) -> Segment:
        limit = min(self.config.segment_jitter_ms, self.config.segment_ms)
        segment = Segment.create(
            self.environment,
            str(self.directory),
            base_offset,
            self.config,
            roll_jitter_ms=random.randrange(limit) if limit > 0 else 0,
        )
        self.segments.add(segment)
        return segment

    # Cutting

    def truncate_to(self, offset: int) -> bool:
        """Drop all records at or after an offset; False if there are none."""
        if offset < 0:
            raise ValueError(f"Cannot truncate {self.name} to offset {offset}")
        if offset >= self.end_offset:
            return False
        if self.segments.first.base_offset > offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            # From the end on, so that a crash in between leaves no hole.
            self.remove_segments([s for s in self.segments if s.base_offset > offset][::-1])
            self.segments.active.truncate_to(offset)
            self._set_end_offset(offset)
            self._set_start_offset(min(offset, self.start_offset))
            self.epochs.truncate_from_end(offset)
            self._rebuild_producers()
            self.producers.high_watermark_moved(self.high_watermark)
        except OSError as error:
            self._fail(error)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records; the next one gets the given offset."""
        try:
            self.remove_segments(list(self.segments)[::-1])
            self._add_segment(offset)
            self._set_end_offset(offset)
            self.epochs.clear()
            self.producers.clear(offset)
            self._set_start_offset(offset)
        except OSError as error:
            self._fail(error)

    def advance_start_offset(self, offset: int) -> None:
        """Hide all records before an offset; their segments go with the next clean-up."""
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(offset, self.start_offset, self.high_watermark)
        if offset <= self.start_offset:
            return
        try:
            self._set_start_offset(offset)
            self.epochs.truncate_from_start(offset)
            self.producers.truncate_head(offset)
        except OSError as error:
            self._fail(error)

    def remove_segments(self, removed: Sequence[Segment]) -> None:
        """Take segments out of the log; their files are removed after file.delete.delay.ms."""
        self.segments.remove(removed)
        discard_segments(self.environment, removed, self.config.file_delete_delay_ms)

    def delete_segments(self, removed: Sequence[Segment]) -> None:
        """Remove the oldest segments; a log always keeps one, which may have to be made."""
        if not removed:
            return
        try:
            if len(removed) == len(self.segments):
                self._roll(self.end_offset)
            self.remove_segments(removed)
        except OSError as error:
            self._fail(error)
        self.advance_start_offset(self.segments.first.base_offset)

    def replace_segments(self, new: Sequence[Segment], old: Sequence[Segment]) -> None:
        """Put compacted segments (.cleaned) into the place of others that are not active."""
        try:
            replace_segments(
                self.environment, self.segments, new, old, self.config.file_delete_delay_ms
            )
        except OSError as error:
            self._fail(error)

    # Settings, place and end

    def update_config(self, config: LogConfig) -> None:
        """Take over changed settings; they hold from the next append on."""
        self.config = config
        self.rules = RecordRules.of(config, validate_records=self.environment.validate_records)
        try:
            self._fit_epochs()
        except OSError as error:
            self._fail(error)

    def rename_directory(self, name: str) -> None:
        """Give the directory another name beside the old one."""
        target = self.directory.with_name(name)
        with self._rename_lock:
            try:
                self.environment.files.replace(self.directory, target)
            except OSError as error:
                self._fail(error)
            self.environment.deferred_deletes.moved(str(self.directory), str(target))
            self.directory = target
            for segment in self.segments:
                segment.rename(str(target), segment.suffix)
            self.epochs.directory = str(target)
            self.producers.snapshots.directory = str(target)

    def remove_expired_producers(self) -> None:
        """Forget producer ids that have not written for long."""
        self.producers.remove_expired(self._clock())

    def remove_old_snapshots(self) -> None:
        """Once the recovery point is on record, producer state from before it is not needed.

        The last two segments' snapshots are kept, so that a truncation finds one.
        """
        active = self.segments.active
        kept = self.segments.lower(active.base_offset) or active
        recovered = self.segments.lower(self.recovery_point)
        first = recovered.base_offset if recovered is not None else self.recovery_point
        try:
            self.producers.snapshots.keep_within(min(first, kept.base_offset), self.end_offset)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Write a snapshot, cut the indexes to size and let go of all files.

        `flush` comes before it if the data must be on the disk.
        """
        try:
            self.producers.take_snapshot()
            self.producers.snapshots.sync()
            self.segments.active.become_inactive()
            # Also of segments that were rolled when all of them had been flushed.
            for segment in self.segments:
                segment.indexes.sync_positions()
        except OSError as error:
            self._fail(error)
        finally:
            self.release_files()

    def abandon(self) -> None:
        """Let go of all files without writing anything: the directory is about to go."""
        for segment in self.segments:
            segment.deleted = True
        self.release_files()
