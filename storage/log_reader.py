"""Finding things in a log: by offset, by timestamp, within what a reader may see.

Owns reads. Must not change the log.
"""

from typing import NamedTuple

from storage.append_info import ReadIsolation
from storage.errors import OffsetOutOfRangeError
from storage.files import EMPTY_SLICE, FileSlice
from storage.leader_epochs import UNDEFINED_EPOCH, EpochEnd
from storage.log_state import LogState
from storage.records.errors import UnsupportedForMessageFormatError
from storage.records.layout import MAGIC_1, NO_TIMESTAMP
from storage.segment import Segment, TimestampOffset
from storage.txn_index import AbortedTransaction


class LogRead(NamedTuple):
    """What a read found, and the log's offsets as they were at that moment."""

    slice: FileSlice
    start_offset: int
    end_offset: int
    high_watermark: int
    last_stable_offset: int
    # Only for readers of committed data: transactions whose records they must skip.
    aborted: list[AbortedTransaction] | None = None
    # False if the size limit cut even the first batch.
    first_batch_whole: bool = True


class LogReader(LogState):
    """The reading half of a log."""

    # Segment, offset and position of the last look-up of a limit that lies inside a segment.
    _known_limit: tuple[Segment, int, int] | None = None

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: ReadIsolation = ReadIsolation.HIGH_WATERMARK,
        minimum_one_batch: bool = True,
    ) -> LogRead:
        """Bytes from the batch that contains `offset` on, as far as the reader may see."""
        if self.is_offline:
            self._check_online()
        end_offset = self.end_offset
        if not self.start_offset <= offset <= end_offset:
            raise OffsetOutOfRangeError(offset, self.start_offset, end_offset)
        if isolation is ReadIsolation.HIGH_WATERMARK:
            limit = self.high_watermark
        elif isolation is ReadIsolation.LOG_END:
            limit = end_offset
        else:
            limit = self.last_stable_offset
        aborted: list[AbortedTransaction] | None = None
        if isolation is ReadIsolation.COMMITTED:
            aborted = []
        found = EMPTY_SLICE
        is_whole = True
        if offset < limit:
            try:
                segment = self.segments.floor(offset)
                while segment is not None:
                    end = self._readable_end(segment, limit)
                    read = segment.read(offset, max_bytes, end, minimum_one_batch)
                    if read is not None:
                        found, is_whole = read
                        if aborted is not None:
                            aborted = self._aborted(offset, segment, found)
                        break
                    segment = self.segments.higher(segment.base_offset)
            except OSError as error:
                self._fail(error)
        return LogRead(
            found,
            self.start_offset,
            end_offset,
            self.high_watermark,
            self.last_stable_offset,
            aborted,
            is_whole,
        )

    def _readable_end(self, segment: Segment, limit: int) -> int:
        """The position in a segment at which offset `limit` begins, or the segment's end."""
        if limit >= self.end_offset:
            return segment.size
        following = self.segments.higher(segment.base_offset)
        if following is not None and following.base_offset <= limit:
            return segment.size
        known = self._known_limit
        if known is not None and known[0] is segment and known[1] == limit:
            return known[2]
        position = segment.position_of_append(limit)
        if position is None:
            found = segment.find(limit)
            position = segment.size if found is None else found.position
        self._known_limit = (segment, limit, position)
        return position

    def _aborted(self, offset: int, segment: Segment, found: FileSlice) -> list[AbortedTransaction]:
        """The aborted transactions with records between `offset` and the end of a slice."""
        end = segment.indexes.offsets.offset_at_or_after(found.position + found.length)
        if end is None:
            following = self.segments.higher(segment.base_offset)
            end = self.end_offset if following is None else following.base_offset
        return self.aborted_transactions(offset, end)

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `offset` to `end_offset` - 1."""
        aborted: list[AbortedTransaction] = []
        segment = self.segments.floor(offset)
        while segment is not None:
            if segment.indexes.transactions.exists:
                found, is_complete = segment.indexes.transactions.search(offset, end_offset)
                aborted += found
                if is_complete:
                    break
            segment = self.segments.higher(segment.base_offset)
        return aborted

    # By timestamp

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record whose timestamp is not below the given one; None if there is none."""
        if self.rules.magic < MAGIC_1:
            raise UnsupportedForMessageFormatError(
                f"Records of message format {self.config.message_format_version} have no timestamps"
            )
        self._check_online()
        try:
            for segment in self.segments:
                if segment.largest[0] >= timestamp:
                    found = segment.find_timestamp(timestamp, self.start_offset)
                    if found is not None:
                        return found
        except OSError as error:
            self._fail(error)
        return None

    def earliest_offset(self) -> TimestampOffset:
        """The start of the log, with its leader epoch if that is known."""
        epochs = self.epochs.entries
        is_known = epochs and epochs[0].start_offset <= self.start_offset
        epoch = epochs[0].epoch if is_known else UNDEFINED_EPOCH
        return TimestampOffset(NO_TIMESTAMP, self.start_offset, epoch)

    def latest_offset(self) -> TimestampOffset:
        """The end of the log, with the latest leader epoch."""
        return TimestampOffset(NO_TIMESTAMP, self.end_offset, self.epochs.latest_epoch)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp of the log."""
        largest = max(self.segments, key=lambda segment: segment.largest[0])
        if largest.largest[0] < 0:
            return None
        return largest.find_timestamp(largest.largest[0], self.start_offset)

    def segment_offsets_before(self, timestamp: int, limit: int) -> list[int]:
        """Up to `limit` offsets at which segments begin that are not younger, newest first.

        -1 stands for the end of the log, -2 for its start (ListOffsets version 0).
        """
        starts = [
            (max(segment.base_offset, self.start_offset), segment.modified_ms)
            for segment in self.segments
        ]
        if self.segments.active.size > 0:
            starts.append((self.end_offset, self._clock()))
        if timestamp == -2:
            chosen = starts[:1]
        elif timestamp == -1:
            chosen = starts
        else:
            last = max(
                (number for number, (_, time) in enumerate(starts) if time <= timestamp),
                default=-1,
            )
            chosen = starts[: last + 1]
        newest = chosen[max(len(chosen) - limit, 0) :]
        return sorted((offset for offset, _ in newest), reverse=True)

    # By leader epoch

    @property
    def latest_epoch(self) -> int:
        """The epoch of the latest leader whose records are here; -1 if unknown."""
        return self.epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Where the records of a leader epoch end in this log."""
        return self.epochs.end_of(epoch, self.end_offset)
