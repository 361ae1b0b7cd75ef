"""Rebuilds a log's list of leader epochs from its batches, where the file was lost.

Owns when that is needed. The file is replaced without waiting for the disk, so that after a loss
of power it may be empty or torn; what recovery finds behind the recovery point is then not all.
"""

import logging
from collections.abc import Iterator

from storage.batch_scan import scan_headers
from storage.leader_epochs import UNDEFINED_EPOCH, EpochEntry, LeaderEpochs
from storage.log_config import INT64_MAX
from storage.records.errors import CorruptRecordError
from storage.records.layout import MAGIC_2, BatchHeader
from storage.segments import Segments

logger = logging.getLogger(__name__)


def rebuild_epochs_if_lost(epochs: LeaderEpochs, segments: Segments, start_offset: int) -> None:
    """Read all batches' headers if the first batch has an epoch that the list does not know."""
    if epochs.epoch_at(start_offset) != UNDEFINED_EPOCH:
        return
    first = next(_headers(segments, start_offset), None)
    if first is None or first.magic < MAGIC_2 or first.partition_leader_epoch < 0:
        return
    if epochs.epoch_at(first.base_offset) != UNDEFINED_EPOCH:
        return
    logger.warning("%s: its leader epochs are taken from the batches", epochs.directory)
    for epoch, offset in _epochs_of(segments, start_offset):
        epochs.assign(epoch, offset)


def _epochs_of(segments: Segments, start_offset: int) -> list[EpochEntry]:
    found: list[EpochEntry] = []
    latest = UNDEFINED_EPOCH
    for header in _headers(segments, start_offset):
        if header.magic < MAGIC_2:
            found.clear()  # the format was changed back meanwhile: what was before is void
        elif header.partition_leader_epoch > latest:
            latest = header.partition_leader_epoch
            found.append(EpochEntry(latest, max(header.base_offset, start_offset)))
    return found


def _headers(segments: Segments, start_offset: int) -> Iterator[BatchHeader]:
    """The headers of all batches from an offset on, as far as they can be read."""
    for segment in segments.between(start_offset, INT64_MAX):
        try:
            for _, header in scan_headers(segment.descriptor(), 0, segment.size):
                if header.last_offset >= start_offset:
                    yield header
        except CorruptRecordError as error:
            logger.warning("%s is damaged: %s", segment, error)
