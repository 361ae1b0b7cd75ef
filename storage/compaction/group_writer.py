"""Writes the segment that takes the place of a group of others, as .cleaned files.

Owns where index entries go and when the files are safe on the disk. Must not know which records
stay. Where offsets lie too far apart for one segment's index (which only brokers before Kafka
1.1 let happen), it writes several.
"""

from typing import Final

from storage.compaction.batch_filter import KeptBatch
from storage.compaction.job import CleanedSegment
from storage.environment import Environment
from storage.log_config import INT32_MAX, LogConfig
from storage.records.layout import NO_TIMESTAMP
from storage.segment import Segment
from storage.segment_files import CLEANED_SUFFIX, INDEX_KINDS, LOG_KIND, SegmentSizes
from storage.txn_index import AbortedTransaction

_MOST_PENDING_BYTES: Final = 1024 * 1024


class GroupWriter:
    """Takes batches in the order of their offsets."""

    def __init__(
        self, environment: Environment, directory: str, base_offset: int, config: LogConfig
    ) -> None:
        self._environment = environment
        self._directory = directory
        self._config = config
        self._next_offset = base_offset
        # Batches for the next write, and bytes that no index entry divides, these included.
        self._pending: list[KeptBatch] = []
        self._pending_bytes = 0
        self._bytes_since_entry = 0
        self._segments = [self._create(base_offset)]

    def append(self, batch: KeptBatch) -> None:
        """Add a batch; one that is due for an index entry is written by itself, because the
        entry tells the last offset of what is written at once."""
        segment = self._segments[-1]
        if batch.last_offset - segment.base_offset > INT32_MAX:
            self._write_pending()
            self._bytes_since_entry = 0
            base_offset = max(self._next_offset, batch.last_offset - INT32_MAX)
            segment = self._create(base_offset)
            self._segments.append(segment)
        self._next_offset = batch.last_offset + 1
        size = len(batch.data)
        if self._bytes_since_entry > self._config.index_interval_bytes:
            self._write_pending()
            self._pending.append(batch)
            self._write_pending()
            self._bytes_since_entry = size
            return
        self._pending.append(batch)
        self._pending_bytes += size
        self._bytes_since_entry += size
        if self._pending_bytes > _MOST_PENDING_BYTES:
            self._write_pending()

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Index a transaction whose marker is the last batch that was added."""
        self._segments[-1].indexes.transactions.append(aborted)

    def finish(self, modified_ms: int) -> tuple[CleanedSegment, ...]:
        """Bring all to the disk; the files are as old as those that they replace."""
        self._write_pending()
        files = self._environment.files
        for segment in self._segments:
            segment.become_inactive()
            segment.sync()
            segment.release_all()
            for kind in (LOG_KIND, "index", "timeindex"):
                files.set_modified_ms(segment.path(kind), modified_ms)
        return tuple(map(self._describe, self._segments))

    def discard(self) -> None:
        """Remove what was written."""
        for segment in self._segments:
            segment.release_all()
            for kind in (LOG_KIND, *INDEX_KINDS):
                self._environment.files.unlink(segment.path(kind))

    def _create(self, base_offset: int) -> Segment:
        return Segment.create(
            self._environment, self._directory, base_offset, self._config, CLEANED_SUFFIX
        )

    def _write_pending(self) -> None:
        pending = self._pending
        if not pending:
            return
        latest = max(pending, key=lambda batch: batch.max_timestamp)
        self._segments[-1].append(
            pending[0].data if len(pending) == 1 else b"".join(batch.data for batch in pending),
            pending[0].first_offset,
            pending[-1].last_offset,
            max(latest.max_timestamp, NO_TIMESTAMP),
            latest.last_offset,
        )
        self._pending = []
        self._pending_bytes = 0

    def _describe(self, segment: Segment) -> CleanedSegment:
        indexes = segment.indexes
        transactions = indexes.transactions
        return CleanedSegment(
            segment.base_offset,
            SegmentSizes(
                segment.size,
                indexes.offsets.size_in_bytes,
                indexes.times.size_in_bytes,
                transactions.size_in_bytes,
            ),
            segment.largest,
        )
