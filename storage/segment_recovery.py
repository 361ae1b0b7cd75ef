"""Reads a segment from end to end, finds where its damage begins and rebuilds its indexes.

Owns the check of one segment. Must not know other segments or files beside it.
"""

import logging

from storage.batch_scan import scan_batches, scan_headers
from storage.errors import SegmentOverflowError
from storage.files import unless_disk_is_full
from storage.leader_epochs import LeaderEpochs
from storage.log_config import INT32_MAX, LogConfig
from storage.producer_state import ProducerState
from storage.records.batches import Batch
from storage.records.errors import CorruptRecordError, RecordDataError
from storage.records.layout import MAGIC_2, NO_PRODUCER_ID, NO_TIMESTAMP
from storage.segment import Segment
from storage.txn_index import AbortedTransaction

logger = logging.getLogger(__name__)


def recover_segment(
    segment: Segment, config: LogConfig, producers: ProducerState, epochs: LeaderEpochs | None
) -> int:
    """Check every batch and cut the segment at the first damage; returns the bytes cut off.

    `producers` must be at the segment's base offset; it is brought to the segment's end.
    """
    segment.indexes.reset()
    base_offset = segment.base_offset
    largest = (NO_TIMESTAMP, base_offset)
    valid_bytes = 0
    last_indexed = 0
    last_offset = base_offset - 1
    try:
        for scanned in scan_batches(segment.descriptor(), 0, segment.size):
            scanned.check()
            header = scanned.batch.header
            if header.base_offset <= last_offset:
                raise CorruptRecordError(f"Offset {header.base_offset} follows {last_offset}")
            last_offset = header.last_offset
            if last_offset - base_offset > INT32_MAX:
                _check_growth(segment, valid_bytes)
                raise SegmentOverflowError(base_offset, last_offset)
            if header.max_timestamp > largest[0]:
                largest = (header.max_timestamp, last_offset)
            if valid_bytes - last_indexed > config.index_interval_bytes:
                with unless_disk_is_full(f"An index entry of {segment}"):
                    segment.indexes.append(last_offset, valid_bytes, largest)
                last_indexed = valid_bytes
            if header.magic >= MAGIC_2:
                if epochs is not None and header.partition_leader_epoch > epochs.latest_epoch:
                    with unless_disk_is_full(f"A leader epoch of {segment}"):
                        epochs.assign(header.partition_leader_epoch, header.base_offset)
                if header.producer_id == NO_PRODUCER_ID:
                    producers.end_offset = last_offset + 1
                else:
                    _replay(segment, producers, scanned.batch)
            valid_bytes += header.size_in_bytes
    except RecordDataError as error:
        logger.warning("%s is damaged from byte %d on: %s", segment, valid_bytes, error)
    segment.largest = largest
    truncated = segment.size - valid_bytes
    if truncated:
        logger.warning("%s: its last %d bytes are cut off", segment, truncated)
        segment.truncate_bytes(valid_bytes)
    segment.indexes.transactions.trim()
    with unless_disk_is_full(f"The last time index entry of {segment}"):
        segment.become_inactive()
    return truncated


def _check_growth(segment: Segment, start: int) -> None:
    """Tell a segment that is too wide from one whose offsets, which no checksum covers, broke."""
    last_offset = -1
    for position, header in scan_headers(segment.descriptor(), start, segment.size):
        if header.base_offset <= last_offset:
            raise CorruptRecordError(
                f"Offset {header.base_offset} at {position} follows {last_offset}"
            )
        last_offset = header.last_offset


def _replay(segment: Segment, producers: ProducerState, batch: Batch) -> None:
    """Keep the producers' state up to date and note aborted transactions."""
    ended = producers.replay(batch.header, lambda: batch.data)
    if ended is None:
        return
    if ended.is_aborted:
        last_stable_offset = producers.last_stable_offset_after(ended)
        segment.indexes.transactions.append(
            AbortedTransaction(
                ended.producer_id, ended.first_offset, ended.last_offset, last_stable_offset
            )
        )
    producers.complete(ended)
