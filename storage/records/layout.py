"""Where the fields of a record batch of magic 2 lie, and nothing about what the records hold.

Owns the fixed 61-byte header, its flags and the few patches that are made in place. Must not
know compression, record contents, validation rules or files.

Record batch, magic 2, big endian:

     0         8        12        16      17     21         23
    +---------+--------+---------+-------+------+----------+-------------------+
    | base    | batch  | leader  | magic | crc  | attri-   | last offset delta |
    | offset 8| length | epoch 4 | 1     | 4    | butes 2  | 4                 |
    |         | 4      |         |       |      |          |                   |
    +---------+--------+---------+-------+------+----------+-------------------+
     27               35              43            51         53         57       61
    +----------------+---------------+-------------+----------+----------+--------+---------+
    | base timestamp | max timestamp | producer id | producer | base     | record | records |
    | 8              | 8             | 8           | epoch 2  | seq. 4   | count 4| ...     |
    +----------------+---------------+-------------+----------+----------+--------+---------+

    batch length   counts what follows it: the whole batch is batch length + 12 bytes
    crc            CRC-32C of all that follows it; base offset and leader epoch lie outside
    attributes     bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control
"""

from enum import IntEnum
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from storage.records.errors import CorruptRecordError, UnsupportedCodecError

Buffer = bytes | bytearray | memoryview
WritableBuffer = bytearray | memoryview

BATCH_HEADER: Final = Struct(">qiibIhiqqqhii")
BATCH_HEADER_SIZE: Final = BATCH_HEADER.size

# The first bytes of an entry of any magic: offset, length, then (magic 2) the leader epoch or
# (magic 0 and 1) the CRC, then the magic.
ENTRY_PREFIX: Final = Struct(">qiib")
# Offset and length: what precedes every batch and every message, whatever its magic.
LOG_OVERHEAD: Final = 12

OFFSET_FIELD: Final = Struct(">q")
LENGTH_FIELD: Final = Struct(">i")
LEADER_EPOCH_FIELD: Final = Struct(">i")
CRC_FIELD: Final = Struct(">I")
ATTRIBUTES_FIELD: Final = Struct(">h")
TIMESTAMP_FIELD: Final = Struct(">q")

BASE_OFFSET_POSITION: Final = 0
LENGTH_POSITION: Final = 8
LEADER_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21  # the CRC covers the batch from here to its end
LAST_OFFSET_DELTA_POSITION: Final = 23
MAX_TIMESTAMP_POSITION: Final = 35

MAGIC_0: Final = 0
MAGIC_1: Final = 1
MAGIC_2: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
# What Kafka 2.5 knows; a batch that later releases have compacted may have another one, which
# says that its base timestamp is the time to remove its tombstones.
KNOWN_ATTRIBUTES: Final = 0x3F

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

_SEQUENCE_MODULUS: Final = 1 << 31


class Codec(IntEnum):
    """Compression of a batch, by the number that its attributes carry."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Who set a record's timestamp; records of magic 0 have none at all."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


_CODECS: Final = tuple(Codec)


def codec_of(attributes: int) -> Codec:
    """The codec that a batch's or message's attributes name."""
    number = attributes & CODEC_MASK
    if number >= len(_CODECS):
        raise UnsupportedCodecError(f"Unknown compression codec {number}")
    return _CODECS[number]


class BatchHeader(NamedTuple):
    """The header of a batch of magic 2, field by field, in the order of the bytes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_in_bytes(self) -> int:
        """Size of the whole batch, offset and length fields included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; sequences wrap to 0 after 2**31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_MODULUS

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == MAGIC_0:
            return TimestampType.NO_TIMESTAMP_TYPE
        if self.attributes & LOG_APPEND_TIME_FLAG:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME


def parse_batch_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header of the magic 2 batch at `position`; its sizes and CRC are not checked here."""
    try:
        header = BatchHeader._make(BATCH_HEADER.unpack_from(buffer, position))
    except struct_error:
        available = max(0, len(buffer) - position)
        raise CorruptRecordError(
            f"Batch header of {BATCH_HEADER_SIZE} bytes expected, {available} bytes available"
        ) from None
    if header.magic != MAGIC_2:
        raise CorruptRecordError(f"Batch of magic {MAGIC_2} expected, found magic {header.magic}")
    return header


def set_base_offset(buffer: WritableBuffer, offset: int, position: int = 0) -> None:
    """Patch the base offset of the batch at `position`; the CRC does not cover it."""
    OFFSET_FIELD.pack_into(buffer, position + BASE_OFFSET_POSITION, offset)


def set_leader_epoch(buffer: WritableBuffer, epoch: int, position: int = 0) -> None:
    """Patch the leader epoch of the magic 2 batch at `position`; the CRC does not cover it."""
    LEADER_EPOCH_FIELD.pack_into(buffer, position + LEADER_EPOCH_POSITION, epoch)
