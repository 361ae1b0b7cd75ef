"""Where each record of a magic 2 batch lies, and as much of it as compaction asks for.

Owns one loop over the encoded records. Timestamps are skipped, values and headers stay unread:
a record that is kept is copied as it is. The layout is in `storage.records.record`.
"""

from storage.records.batches import Batch
from storage.records.compression import decompress
from storage.records.errors import InvalidRecordError
from storage.records.layout import BATCH_HEADER_SIZE
from storage.records.varint import decode_folded_tail, encode_varint

# Start, end, offset delta, key, whether it has a value. A plain tuple, because there is one for
# each record.
RecordSpan = tuple[int, int, int, bytes | None, bool]


def open_batch(batch: Batch) -> tuple[bytes, list[RecordSpan]]:
    """The uncompressed records part of a batch, and where each record lies in it."""
    header = batch.header
    data = decompress(header.codec, batch.data[BATCH_HEADER_SIZE:])
    spans = _read_spans(data, header.record_count)
    if spans and spans[-1][2] > header.last_offset_delta:
        raise InvalidRecordError(
            f"A record has the offset delta {spans[-1][2]}, its batch ends with"
            f" {header.last_offset_delta}"
        )
    return data, spans


def _read_spans(data: bytes, count: int) -> list[RecordSpan]:  # noqa: C901
    """The loop that decides how fast a log is cleaned: numbers of one or two bytes, which nearly
    all are, are read in line."""
    spans: list[RecordSpan] = []
    size = len(data)
    position = 0
    last_delta = -1
    try:
        for _ in range(count):
            start = position
            number = data[position]
            position += 1
            if number > 0x7F:
                if (more := data[position]) > 0x7F:
                    number, position = decode_folded_tail(data, position, number)
                else:
                    number += more - 1 << 7
                    position += 1
            end = position + (number >> 1)
            position += 1  # a byte of attributes
            while data[position] > 0x7F:
                position += 1
            number = data[position + 1]
            position += 2
            if number > 0x7F:
                if (more := data[position]) > 0x7F:
                    number, position = decode_folded_tail(data, position, number)
                else:
                    number += more - 1 << 7
                    position += 1
            delta = number >> 1
            if delta <= last_delta or number & 1:
                raise InvalidRecordError(f"Offset delta {delta} follows {last_delta}")
            last_delta = delta
            number = data[position]
            position += 1
            if number > 0x7F:
                if (more := data[position]) > 0x7F:
                    number, position = decode_folded_tail(data, position, number)
                else:
                    number += more - 1 << 7
                    position += 1
            # The lowest bit of a length is its sign, and a negative one means null.
            key = None if number & 1 else data[position : (position := position + (number >> 1))]
            if not position < end <= size:
                raise InvalidRecordError(f"A record at byte {start} of its batch misses its end")
            spans.append((start, end, delta, key, not data[position] & 1))
            position = end
    except IndexError:
        raise InvalidRecordError("A batch ends inside a record") from None
    if position != size:
        raise InvalidRecordError(
            f"{size - position} bytes are left after the {count} records that the batch declares"
        )
    return spans


def read_timestamp_delta(data: bytes, span: RecordSpan) -> tuple[int, int, int]:
    """The timestamp of a record, relative to its batch's base timestamp, and from where to where
    it is written."""
    position = span[0]
    while data[position] > 0x7F:
        position += 1
    start = position + 2  # the end of the length and the attributes lie before it
    number = data[start]
    end = start + 1
    if number > 0x7F:
        number, end = decode_folded_tail(data, end, number)
    return number >> 1 ^ -(number & 1), start, end


def with_timestamp_delta(data: bytes, span: RecordSpan, start: int, end: int, delta: int) -> bytes:
    """A record with another timestamp than the one that is written from `start` to `end`."""
    # The attributes, one byte, lie between the length and the timestamp.
    record = data[start - 1 : start] + encode_varint(delta) + data[end : span[1]]
    return encode_varint(len(record)) + record
