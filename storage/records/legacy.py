"""Messages of magic 0 and 1, the formats before record batches, and their compressed wrappers.

Owns the layout of a message, reading it (also the messages inside a wrapper) and writing it.
Must not know magic 2, validation rules or files.

Message, big endian; a message is its own batch of one record:

     0          8        12      16      17           18
    +----------+--------+-------+-------+------------+---------------------+
    | offset 8 | length | crc 4 | magic | attributes | timestamp 8         |
    |          | 4      |       | 1     | 1          | (magic 1 only)      |
    +----------+--------+-------+-------+------------+---------------------+
    | key length 4 (-1: null) | key | value length 4 (-1: null) | value    |
    +-------------------------+-----+---------------------------+----------+

    length       counts what follows it
    crc          CRC-32 of all that follows it
    attributes   bits 0-2 codec, bit 3 timestamp type (magic 1 only)

A wrapper is a message whose value is compressed messages. Its offset is the last inner one's.
Inner offsets are absolute in magic 0; in magic 1 they count from 0 at the first inner message.
A wrapper of magic 1 whose type is LogAppendTime has the timestamp of all its messages.
"""

from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from storage.checksums import crc32
from storage.records.compression import decompress
from storage.records.errors import CorruptRecordError, InvalidRecordError
from storage.records.layout import (
    CODEC_MASK,
    CRC_FIELD,
    LENGTH_POSITION,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_0,
    MAGIC_1,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Codec,
    TimestampType,
    WritableBuffer,
)
from storage.records.record import Record

MESSAGE_HEADER_0: Final = Struct(">qiIbb")
MESSAGE_HEADER_1: Final = Struct(">qiIbbq")
# What the CRC covers of the header.
CHECKED_HEADER_0: Final = Struct(">bb")
CHECKED_HEADER_1: Final = Struct(">bbq")
MESSAGE_START: Final = Struct(">qiI")
FIELD_LENGTH: Final = Struct(">i")

MESSAGE_CRC_POSITION: Final = 12
MESSAGE_CHECKED_POSITION: Final = 16  # the CRC covers the message from here to its end
MESSAGE_ATTRIBUTES_POSITION: Final = 17
MESSAGE_TIMESTAMP_POSITION: Final = 18

# Magic 0 has the shortest entry: its header and two lengths.
SHORTEST_MESSAGE: Final = MESSAGE_HEADER_0.size + 2 * FIELD_LENGTH.size
SHORTEST_MESSAGE_1: Final = MESSAGE_HEADER_1.size + 2 * FIELD_LENGTH.size

# How many records a wrapper holds is known only after it is decompressed.
UNKNOWN_RECORD_COUNT: Final = -1

_NO_FIELD: Final = FIELD_LENGTH.pack(-1)
_KNOWN_ATTRIBUTES: Final = CODEC_MASK | LOG_APPEND_TIME_FLAG


class Message(NamedTuple):
    """One message that is not a wrapper, on its own or taken out of one."""

    magic: int
    attributes: int
    is_intact: bool
    record: Record


def parse_message_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """A message's header in the shape of a batch header, so that a log can treat all alike.

    The first offset of a wrapper is not in its header: base and last offset are both the last.
    """
    try:
        offset, length, crc, magic, attributes = MESSAGE_HEADER_0.unpack_from(buffer, position)
        timestamp = NO_TIMESTAMP
        if magic == MAGIC_1:
            timestamp = MESSAGE_HEADER_1.unpack_from(buffer, position)[-1]
    except struct_error:
        raise CorruptRecordError("A message ends inside its header") from None
    if magic not in (MAGIC_0, MAGIC_1):
        raise CorruptRecordError(f"Message of magic 0 or 1 expected, found magic {magic}")
    attributes &= _KNOWN_ATTRIBUTES
    return BatchHeader(
        base_offset=offset,
        batch_length=length,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=UNKNOWN_RECORD_COUNT if attributes & CODEC_MASK else 1,
    )


def read_messages(data: Buffer, header: BatchHeader) -> list[Message]:
    """The message `data` itself, or the messages in it if it is a wrapper, offsets absolute."""
    if header.codec is Codec.NONE:
        return [_read_message(bytes(data), header)]
    if header.codec is Codec.ZSTD:
        raise InvalidRecordError(f"Messages of magic {header.magic} cannot use zstd")
    wrapped = _key_and_value(bytes(data), header)[1]
    if wrapped is None:
        raise InvalidRecordError("A compressed wrapper message has no value")
    inner = _split(decompress(header.codec, wrapped, header.magic))
    if not inner:
        raise InvalidRecordError("A compressed wrapper message holds no messages")
    shift = 0
    if header.magic == MAGIC_1:
        shift = _first_inner_offset(header.base_offset, inner[-1].record.offset)
    log_append_time = None
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        log_append_time = header.max_timestamp
    return [_in_wrapper(message, shift, log_append_time) for message in inner]


def _first_inner_offset(wrapper_offset: int, last_relative_offset: int) -> int:
    if wrapper_offset == 0:
        return 0  # some clients leave a produced wrapper's offset at zero
    if wrapper_offset < last_relative_offset:
        raise InvalidRecordError(
            f"A wrapper's offset {wrapper_offset} lies below its last inner offset "
            f"{last_relative_offset}"
        )
    return wrapper_offset - last_relative_offset


def _in_wrapper(message: Message, shift: int, log_append_time: int | None) -> Message:
    record = message.record
    timestamp = record.timestamp
    if log_append_time is not None and message.magic == MAGIC_1:
        timestamp = log_append_time
    return message._replace(
        record=record._replace(offset=record.offset + shift, timestamp=timestamp)
    )


def _split(data: bytes) -> list[Message]:
    messages = []
    position = 0
    while len(data) - position >= LOG_OVERHEAD:
        length = FIELD_LENGTH.unpack_from(data, position + LENGTH_POSITION)[0]
        if length < SHORTEST_MESSAGE - LOG_OVERHEAD:
            raise InvalidRecordError(f"A wrapped message declares a length of {length}")
        message = data[position : position + LOG_OVERHEAD + length]
        if len(message) < LOG_OVERHEAD + length:
            break  # as in any fetch, the last one may be cut off
        messages.append(_read_message(message, parse_message_header(message)))
        position += len(message)
    return messages


def _read_message(data: bytes, header: BatchHeader) -> Message:
    key, value = _key_and_value(data, header)
    return Message(
        header.magic,
        header.attributes,
        crc32(memoryview(data)[MESSAGE_CHECKED_POSITION:]) == header.crc,
        Record(header.base_offset, header.max_timestamp, key, value),
    )


def _key_and_value(data: bytes, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    position = MESSAGE_HEADER_1.size if header.magic == MAGIC_1 else MESSAGE_HEADER_0.size
    try:
        key, position = _read_field(data, position)
        value, position = _read_field(data, position)
    except struct_error:
        raise InvalidRecordError("A message ends inside its key or value") from None
    if position > len(data):
        raise InvalidRecordError(f"A message's value ends {position - len(data)} bytes past it")
    return key, value


def _read_field(data: bytes, position: int) -> tuple[bytes | None, int]:
    (length,) = FIELD_LENGTH.unpack_from(data, position)
    position += FIELD_LENGTH.size
    if length < 0:
        return None, position
    return data[position : position + length], position + length


def encode_message(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    attributes: int = 0,
) -> bytes:
    """One message of magic 0 or 1; magic 0 leaves the timestamp out."""
    if magic == MAGIC_0:
        checked = CHECKED_HEADER_0.pack(magic, attributes)
    else:
        checked = CHECKED_HEADER_1.pack(magic, attributes, timestamp)
    checked = b"".join((checked, *_encode_field(key), *_encode_field(value)))
    length = CRC_FIELD.size + len(checked)
    return MESSAGE_START.pack(offset, length, crc32(checked)) + checked


def _encode_field(field: bytes | None) -> tuple[bytes, ...]:
    if field is None:
        return (_NO_FIELD,)
    return FIELD_LENGTH.pack(len(field)), field


def set_message_timestamp(
    message: WritableBuffer, timestamp: int, timestamp_type: TimestampType
) -> None:
    """Patch timestamp and type of the magic 1 message or wrapper `message`, and its CRC."""
    attributes = message[MESSAGE_ATTRIBUTES_POSITION] & CODEC_MASK
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    CHECKED_HEADER_1.pack_into(message, MESSAGE_CHECKED_POSITION, MAGIC_1, attributes, timestamp)
    crc = crc32(memoryview(message)[MESSAGE_CHECKED_POSITION:])
    CRC_FIELD.pack_into(message, MESSAGE_CRC_POSITION, crc)
