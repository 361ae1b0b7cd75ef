"""Cleans one log: reads its segments, writes .cleaned ones with what stays of them.

Owns the two passes: the first learns the last offset of each key in the dirty part, the second
copies what stays, from the start of the log on. Works on files alone, in whatever process; the
log itself changes only when its owner puts the cleaned segments into place (pending.py).
"""

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, cast

from storage.batch_scan import scan_batches
from storage.compaction.batch_filter import BatchFilter
from storage.compaction.group_writer import GroupWriter
from storage.compaction.grouping import group_sources
from storage.compaction.job import CleanedGroup, CleaningJob, CleaningSummary, SourceSegment
from storage.compaction.offset_map import OffsetMap
from storage.compaction.record_spans import open_batch
from storage.compaction.transactions import Transactions
from storage.environment import Environment
from storage.log_config import LogConfig
from storage.records.batches import Batch, iter_records
from storage.records.errors import CorruptRecordError
from storage.records.layout import MAGIC_2
from storage.segment_files import LOG_KIND, segment_path
from storage.time_index import TimeIndex

# The index of a cleaned segment may come out denser than those of its sources, where these had
# one entry for many batches. It may not overflow: this many times fewer entries than fit.
_INDEX_HEADROOM: Final = 2


class Cleaning:
    """One cleaning of one log. `transferred` is told of all bytes read and written; it may wait,
    and it may raise to give the cleaning up."""

    def __init__(
        self, environment: Environment, job: CleaningJob, transferred: Callable[[int], None]
    ) -> None:
        self._environment = environment
        self._job = job
        self._transferred = transferred
        self._bytes_untold = 0
        self._map = OffsetMap(
            job.map_bytes,
            job.map_load_factor,
            job.first_dirty_offset,
            job.first_uncleanable_offset,
        )
        self.summary = CleaningSummary()

    def run(self) -> Iterator[CleanedGroup]:
        """Clean the log, one group of segments after the other; afterwards `summary` is set."""
        job = self._job
        summary = self.summary
        started = time.monotonic()
        self._build_map()
        self._map.seal()
        summary.map_seconds = time.monotonic() - started
        summary.keys = len(self._map)
        summary.end_offset = self._map.latest_offset + 1
        transactions = Transactions(job.aborted)
        batch_filter = BatchFilter(self._map, transactions, job.last_records)
        sources = [one for one in job.sources if one.base_offset < summary.end_offset]
        for group in group_sources(
            sources, job.segment_bytes, job.segment_index_bytes, job.first_uncleanable_offset
        ):
            yield self._clean(group, batch_filter, transactions)
        summary.records_read = batch_filter.records_read
        summary.seconds = time.monotonic() - started

    def _tell(self, count: int) -> None:
        self._bytes_untold += count
        if self._bytes_untold >= self._job.read_bytes:
            self._transferred(self._bytes_untold)
            self._bytes_untold = 0

    # The first pass

    def _build_map(self) -> None:
        job = self._job
        start = job.first_dirty_offset
        transactions = Transactions(one for one in job.aborted if one.last_offset >= start)
        clean = bisect_right(job.sources, start, key=lambda one: one.base_offset) - 1
        dirty = job.sources[max(clean, 0) :]
        ends = [one.base_offset for one in dirty[1:]] + [job.first_uncleanable_offset]
        position = job.first_dirty_position
        for source, end in zip(dirty, ends, strict=True):
            for batch in self._read(source, position):
                self.summary.map_bytes_read += len(batch.data)
                if not self._map_batch(batch, transactions):
                    return
            # The last offsets of the segment may be gone already.
            self._map.skip_to(end - 1)
            position = 0

    def _map_batch(self, batch: Batch, transactions: Transactions) -> bool:
        """Put the keys of a batch into the map; False if it is full."""
        header = batch.header
        start = self._job.first_dirty_offset
        self.summary.map_records_read += max(header.record_count, 1)
        if header.is_control:
            transactions.is_marker_idle(batch)
        elif header.is_transactional and transactions.is_aborted(header):
            pass  # its keys have not been written
        elif not self._map.put(*self._keys(batch)):
            return False
        if header.last_offset >= start:
            self._map.skip_to(header.last_offset)
        return True

    def _keys(self, batch: Batch) -> tuple[list[bytes], list[int]]:
        """The keys in the dirty part of a batch, and their offsets."""
        header = batch.header
        keys: list[bytes | None]
        if header.magic < MAGIC_2:
            records = list(iter_records(batch))
            keys = [record.key for record in records]
            offsets = [record.offset for record in records]
        else:
            spans = open_batch(batch)[1]
            base_offset = header.base_offset
            keys = [span[3] for span in spans]
            offsets = [base_offset + span[2] for span in spans]
        start = self._job.first_dirty_offset
        if None not in keys and (not offsets or offsets[0] >= start):
            return cast("list[bytes]", keys), offsets
        dirty_keys = []
        dirty_offsets = []
        for key, offset in zip(keys, offsets, strict=True):
            if offset < start:
                continue
            if key is None:
                self.summary.records_without_key += 1
            else:
                dirty_keys.append(key)
                dirty_offsets.append(offset)
        return dirty_keys, dirty_offsets

    # The second pass

    def _clean(
        self, group: list[SourceSegment], batch_filter: BatchFilter, transactions: Transactions
    ) -> CleanedGroup:
        config = self._config(sum(source.size for source in group))
        writer = GroupWriter(self._environment, self._job.directory, group[0].base_offset, config)
        try:
            for source in group:
                self._clean_into(writer, source, batch_filter, transactions)
            cleaned = writer.finish(group[-1].modified_ms)
        except BaseException:
            writer.discard()
            raise
        self.summary.bytes_written += sum(one.sizes.log for one in cleaned)
        return CleanedGroup(cleaned, tuple(source.base_offset for source in group))

    def _clean_into(
        self,
        writer: GroupWriter,
        source: SourceSegment,
        batch_filter: BatchFilter,
        transactions: Transactions,
    ) -> None:
        keep_deletes = source.modified_ms > self._job.delete_horizon_ms
        for batch in self._read(source):
            self.summary.bytes_read += len(batch.data)
            kept = batch_filter.keep(batch, keep_deletes=keep_deletes)
            if kept is not None:
                writer.append(kept)
                self.summary.records_written += kept.record_count
                self._tell(len(kept.data))
            for aborted in transactions.take_left():
                writer.append_aborted(aborted)

    def _config(self, source_bytes: int) -> LogConfig:
        job = self._job
        most_entries = max(job.segment_index_bytes // TimeIndex.ENTRY.size, 1)
        least_interval = _INDEX_HEADROOM * source_bytes // most_entries
        return LogConfig(
            segment_bytes=job.segment_bytes,
            segment_index_bytes=job.segment_index_bytes,
            index_interval_bytes=max(job.index_interval_bytes, least_interval),
        )

    def _read(self, source: SourceSegment, start: int = 0) -> Iterator[Batch]:
        """The batches of a segment, each checked: a rebuilt one would hide that it was damaged."""
        path = segment_path(self._job.directory, source.base_offset, LOG_KIND)
        descriptor = self._environment.files.open(path, os.O_RDONLY)
        end = start
        for scanned in scan_batches(descriptor, start, source.size, self._job.read_bytes):
            scanned.check()
            size = len(scanned.batch.data)
            self._tell(size)
            yield scanned.batch
            end += size
        if end != source.size:
            raise CorruptRecordError(f"{path} has {source.size - end} bytes that are no batch")
