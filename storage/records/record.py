"""One record, whatever its format, and how the records of a magic 2 batch are read.

Owns the `Record` type and the layout of records inside a magic 2 batch. Must not know batch
headers' meaning beyond the base values it is handed, compression or older formats.

Record, magic 2 (every number but the attributes is a zigzag varint):

    length | attributes 1 byte, unused | timestamp delta | offset delta
    key length (-1: null)   | key
    value length (-1: null) | value
    header count | per header: key length, key in UTF-8, value length (-1: null), value
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from storage.records.errors import InvalidRecordError
from storage.records.varint import decode_folded_tail, encode_varint

RecordHeader = tuple[str, bytes | None]


class Record(NamedTuple):
    """A record with its absolute offset and its timestamp (-1 where the format has none)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()


def iter_encoded_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int
) -> Iterator[Record]:
    """Read `count` records from `data`, the uncompressed records part of a magic 2 batch.

    The loop is the hot spot of all that opens batches: numbers of one byte are read in line,
    fields are checked once per record. A folded length that is odd is negative and means null.
    """
    size = len(data)
    position = 0
    try:
        for _ in range(count):
            number = data[position]
            position += 1
            if number > 0x7F:
                number, position = decode_folded_tail(data, position, number)
            end = position + (number >> 1 ^ -(number & 1))
            if end > size:
                raise InvalidRecordError(f"A record ends {end - size} bytes past its batch")
            number = data[position + 1]  # one byte of attributes lies before it
            position += 2
            if number > 0x7F:
                number, position = decode_folded_tail(data, position, number)
            timestamp = base_timestamp + (number >> 1 ^ -(number & 1))
            number = data[position]
            position += 1
            if number > 0x7F:
                number, position = decode_folded_tail(data, position, number)
            offset = base_offset + (number >> 1 ^ -(number & 1))
            number = data[position]
            position += 1
            if number > 0x7F:
                number, position = decode_folded_tail(data, position, number)
            key = None if number & 1 else data[position : (position := position + (number >> 1))]
            number = data[position]
            position += 1
            if number > 0x7F:
                number, position = decode_folded_tail(data, position, number)
            value = None if number & 1 else data[position : (position := position + (number >> 1))]
            headers: tuple[RecordHeader, ...] = ()
            if data[position]:
                headers, position = _read_headers(data, position, end)
            else:
                position += 1
            if position != end:
                raise InvalidRecordError(f"Fields of a record miss its end by {position - end}")
            yield Record(offset, timestamp, key, value, headers)
    except IndexError:
        raise InvalidRecordError("A batch ends inside a record") from None
    if position != size:
        raise InvalidRecordError(
            f"{size - position} bytes are left after the {count} records that the batch declares"
        )


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    number = data[position]
    position += 1
    if number > 0x7F:
        number, position = decode_folded_tail(data, position, number)
    if number & 1:  # folded: odd is negative, and any negative length means null
        return None, position
    end = position + (number >> 1)
    return data[position:end], end


def _read_headers(data: bytes, position: int, end: int) -> tuple[tuple[RecordHeader, ...], int]:
    number = data[position]
    position += 1
    if number > 0x7F:
        number, position = decode_folded_tail(data, position, number)
    if number & 1 or number >> 1 > end - position:
        raise InvalidRecordError(f"A record cannot have {number >> 1 ^ -(number & 1)} headers")
    headers = []
    for _ in range(number >> 1):
        key, position = _read_bytes(data, position)
        if key is None:
            raise InvalidRecordError("A record header has no key")
        value, position = _read_bytes(data, position)
        headers.append((key.decode(errors="replace"), value))
    return tuple(headers), position


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[RecordHeader] = (),
) -> bytes:
    """The bytes of one record of magic 2, its length in front."""
    body = [b"\x00", encode_varint(timestamp_delta), encode_varint(offset_delta)]
    _append_bytes(body, key)
    _append_bytes(body, value)
    body.append(encode_varint(len(headers)))
    for header_key, header_value in headers:
        _append_bytes(body, header_key.encode())
        _append_bytes(body, header_value)
    body.insert(0, encode_varint(sum(map(len, body))))
    return b"".join(body)


def _append_bytes(body: list[bytes], field: bytes | None) -> None:
    if field is None:
        body.append(encode_varint(-1))
    else:
        body.append(encode_varint(len(field)))
        body.append(field)
