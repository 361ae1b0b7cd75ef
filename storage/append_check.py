"""Looks at the batches of an append before anything is written.

Owns sizes, checksums and the summary (offsets, timestamps) of appended bytes, as far as headers
tell. Must not know the log, its producers or its files.
"""

from typing import NamedTuple

from storage.records.batches import is_intact, iter_batches
from storage.records.errors import CorruptRecordError, RecordTooLargeError
from storage.records.layout import NO_TIMESTAMP, BatchHeader, Buffer


class AppendSummary(NamedTuple):
    """What the headers of appended batches say together."""

    headers: list[BatchHeader]
    valid_bytes: int
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    is_growing: bool


def check_batches(records: Buffer, max_message_bytes: int) -> AppendSummary:
    """Check each batch's size and checksum; a batch that is cut off at the end is left out."""
    headers: list[BatchHeader] = []
    valid_bytes = 0
    last_offset = -1
    is_growing = True
    max_timestamp = NO_TIMESTAMP
    offset_of_max_timestamp = -1
    for batch in iter_batches(records):
        header = batch.header
        size = header.size_in_bytes
        if size > max_message_bytes:
            raise RecordTooLargeError(
                f"A batch of {size} bytes exceeds max.message.bytes = {max_message_bytes}"
            )
        if not is_intact(batch):
            raise CorruptRecordError("A batch fails its checksum")
        if header.last_offset <= last_offset:
            is_growing = False
        last_offset = header.last_offset
        if header.max_timestamp > max_timestamp:
            max_timestamp = header.max_timestamp
            offset_of_max_timestamp = last_offset
        headers.append(header)
        valid_bytes += size
    return AppendSummary(
        headers, valid_bytes, last_offset, max_timestamp, offset_of_max_timestamp, is_growing
    )
