"""Batches of any magic in a buffer: finding them, checking them, opening them.

Owns the walk over a buffer of batches and the choice of format by magic. A message of magic 0 or
1 counts as a batch here, as it does in a log. Must not know files or validation rules.
"""

from collections.abc import Iterator
from typing import NamedTuple

from storage.checksums import crc32, crc32c
from storage.records.compression import decompress
from storage.records.errors import CorruptRecordError, InvalidRecordError
from storage.records.layout import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    LENGTH_FIELD,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC_1,
    MAGIC_2,
    MAGIC_POSITION,
    BatchHeader,
    Buffer,
    TimestampType,
    parse_batch_header,
)
from storage.records.legacy import (
    MESSAGE_CHECKED_POSITION,
    SHORTEST_MESSAGE,
    SHORTEST_MESSAGE_1,
    parse_message_header,
    read_messages,
)
from storage.records.record import Record, iter_encoded_records

# As much of an entry as its length, its magic and thereby its shortest size need.
_BYTES_UP_TO_MAGIC = MAGIC_POSITION + 1
_SHORTEST_BY_MAGIC = (SHORTEST_MESSAGE, SHORTEST_MESSAGE_1, BATCH_HEADER_SIZE)


class Batch(NamedTuple):
    """A batch where it lies: its parsed header, and its bytes from base offset to end."""

    header: BatchHeader
    data: memoryview


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch (or message of magic 0 or 1) at `position`, its CRC unchecked.

    61 bytes are enough of a buffer, or the whole entry where that is shorter.
    """
    if len(buffer) < position + _BYTES_UP_TO_MAGIC:
        raise CorruptRecordError("A batch ends before its magic")
    magic = buffer[position + MAGIC_POSITION]
    if magic > MAGIC_2:
        raise CorruptRecordError(f"Unknown magic {magic}")
    header = (
        parse_batch_header(buffer, position)
        if magic == MAGIC_2
        else parse_message_header(buffer, position)
    )
    if header.batch_length + LOG_OVERHEAD < _SHORTEST_BY_MAGIC[magic]:
        raise CorruptRecordError(
            f"A batch of magic {magic} cannot have a length of {header.batch_length}"
        )
    return header


def iter_batches(buffer: Buffer, position: int = 0) -> Iterator[Batch]:
    """The complete batches from `position` on; a last one that is cut off is left out."""
    view = memoryview(buffer)
    end = len(view)
    while end - position >= _BYTES_UP_TO_MAGIC:
        (length,) = LENGTH_FIELD.unpack_from(view, position + LENGTH_POSITION)
        next_position = position + LOG_OVERHEAD + length
        if length >= 0 and next_position > end:
            return
        header = parse_header(view, position)
        yield Batch(header, view[position:next_position])
        position = next_position


def is_intact(batch: Batch) -> bool:
    """Whether the checksum in the header is that of the bytes."""
    if batch.header.magic == MAGIC_2:
        return crc32c(batch.data[ATTRIBUTES_POSITION:]) == batch.header.crc
    return crc32(batch.data[MESSAGE_CHECKED_POSITION:]) == batch.header.crc


def iter_records(batch: Batch) -> Iterator[Record]:
    """The records of a batch of any magic, in order; control records are records as well.

    Opened lazily: nothing is decompressed or parsed before the first record is asked for.
    """
    header = batch.header
    if header.magic <= MAGIC_1:
        for message in read_messages(batch.data, header):
            yield message.record
        return
    if header.record_count == 0:
        return  # compaction keeps the header of an emptied batch for its producer's state
    if header.record_count < 0:
        raise InvalidRecordError(f"A batch declares {header.record_count} records")
    records = iter_encoded_records(
        decompress(header.codec, batch.data[BATCH_HEADER_SIZE:]),
        header.record_count,
        header.base_offset,
        header.base_timestamp,
    )
    if header.timestamp_type is TimestampType.CREATE_TIME:
        yield from records
        return
    for record in records:
        yield record._replace(timestamp=header.max_timestamp)
