"""The compiled loop that turns the records of opened batches into the buffers of Arrow columns.

Owns the layouts of records inside batches, as kernels.py owns those of headers. Must not know
files, codecs, Arrow or Spark.
"""

from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np

from analytics.decoding.header_kernel import NO_POSITION, compiled, int32, int64, varint
from analytics.decoding.raw_memory import (
    Number,
    byte_at,
    copy_bytes,
    put_byte,
    put_int32,
    put_int64,
)


class Region(IntEnum):
    """The columns of a table of record sections, each lying open in one buffer."""

    START = 0
    END = 1
    MAGIC = 2
    RECORD_COUNT = 3
    BASE_OFFSET = 4  # of a wrapper: its own, which is that of its last message
    BASE_TIMESTAMP = 5
    APPEND_TIMESTAMP = 6  # of all its records, unless it is NO_APPEND_TIMESTAMP
    TIMESTAMP_TYPE = 7
    IS_WRAPPED = 8  # messages of magic 0 or 1 that were taken out of a wrapper
    FILE_POSITION = 9  # where the batch lies in its file, and how many bytes it has there
    FILE_BYTES = 10


REGION_COLUMNS: Final = len(Region)
NO_APPEND_TIMESTAMP: Final = -(1 << 62)


class Wanted(IntEnum):
    """The fields of what a reader asks for: ranges, both ends included, and columns."""

    FIRST_OFFSET = 0
    LAST_OFFSET = 1
    FIRST_TIMESTAMP = 2
    LAST_TIMESTAMP = 3
    KEY = 4
    VALUE = 5
    HEADERS = 6


class Progress(IntEnum):
    """The fields of the state that `append_records` goes on from."""

    REGION = 0
    POSITION = 1  # where the next record begins; -1 before the first of a region
    RECORD = 2
    OFFSET_SHIFT = 3
    ROWS = 4
    KEY_BYTES = 5
    VALUE_BYTES = 6
    HEADERS = 7
    HEADER_KEY_BYTES = 8
    HEADER_VALUE_BYTES = 9
    NULL_KEYS = 10
    NULL_VALUES = 11
    NULL_HEADERS = 12
    NULL_HEADER_VALUES = 13
    HAS_WIDE_HEADER_KEY = 14  # a key with bytes above 127: whether it is UTF-8 must be looked at


PROGRESS_FIELDS: Final = len(Progress)


class Outcome(IntEnum):
    """What `append_records` came to."""

    DONE = 0
    FULL = 1  # the next record does not fit beside those that are there
    DAMAGED = 2  # the section at hand does not hold what it declares


class Part(IntEnum):
    """The buffers of an Arrow batch, which lie side by side in one block of memory."""

    OFFSET = 0
    TIMESTAMP = 1
    TIMESTAMP_TYPE = 2
    KEY_BITMAP = 3
    KEY_ENDS = 4
    KEY_DATA = 5
    VALUE_BITMAP = 6
    VALUE_ENDS = 7
    VALUE_DATA = 8
    HEADERS_BITMAP = 9
    HEADERS_ENDS = 10
    HEADER_KEY_ENDS = 11
    HEADER_KEY_DATA = 12
    HEADER_VALUE_BITMAP = 13
    HEADER_VALUE_ENDS = 14
    HEADER_VALUE_DATA = 15


class Capacity(IntEnum):
    """How much a block holds."""

    ROWS = 0
    KEY_BYTES = 1
    VALUE_BYTES = 2
    HEADERS = 3
    HEADER_KEY_BYTES = 4
    HEADER_VALUE_BYTES = 5


# Numba takes plain integers as constants, which members of the enums above are not.
_START, _END, _MAGIC, _COUNT, _BASE_OFFSET, _BASE_TIMESTAMP, _APPEND_TIMESTAMP = range(7)
_TIMESTAMP_TYPE, _IS_WRAPPED = 7, 8
_FIRST_OFFSET, _LAST_OFFSET, _FIRST_TIMESTAMP, _LAST_TIMESTAMP = range(4)
_WANT_KEY, _WANT_VALUE, _WANT_HEADERS = 4, 5, 6
_REGION, _POSITION, _RECORD, _SHIFT, _ROWS, _KEY_BYTES, _VALUE_BYTES = range(7)
_HEADERS, _HEADER_KEY_BYTES, _HEADER_VALUE_BYTES, _NULL_KEYS, _NULL_VALUES = range(7, 12)
_NULL_HEADERS, _NULL_HEADER_VALUES, _HAS_WIDE_HEADER_KEY = 12, 13, 14
_DONE, _FULL, _DAMAGED = 0, 1, 2
_AT_OFFSET, _AT_TIMESTAMP, _AT_TIMESTAMP_TYPE, _AT_KEY_BITMAP, _AT_KEY_ENDS, _AT_KEY = range(6)
_AT_VALUE_BITMAP, _AT_VALUE_ENDS, _AT_VALUE, _AT_HEADERS_BITMAP, _AT_HEADERS_ENDS = range(6, 11)
_AT_HEADER_KEY_ENDS, _AT_HEADER_KEY, _AT_HEADER_VALUE_BITMAP = 11, 12, 13
_AT_HEADER_VALUE_ENDS, _AT_HEADER_VALUE = 14, 15
_ROWS_HELD, _KEY_BYTES_HELD, _VALUE_BYTES_HELD, _HEADERS_HELD = range(4)
_HEADER_KEY_BYTES_HELD, _HEADER_VALUE_BYTES_HELD = 4, 5
_NO_APPEND_TIMESTAMP = NO_APPEND_TIMESTAMP
_MESSAGE_OVERHEAD = 12
_US_PER_MS = 1000
_LARGEST_MS = ((1 << 63) - 1) // _US_PER_MS


class Block(NamedTuple):
    """The memory of one Arrow batch. Bitmaps come zeroed, and all first ends are 0."""

    memory: Any  # bytes
    starts: Any  # where each Part begins
    capacity: Any  # by Capacity


@compiled
def append_records(data: Any, regions: Any, wanted: Any, progress: Any, block: Any) -> Number:
    """Append the records of all regions that the reader wants, from where `progress` stands.

    Comes back with an Outcome: where the buffers are full they are to be emptied (or enlarged,
    if there is no row in them) and the call repeated.
    """
    while progress[_REGION] < regions.shape[0]:
        region = regions[progress[_REGION]]
        outcome = (
            _append_batch(data, region, wanted, progress, block)
            if region[_MAGIC] == 2
            else _append_messages(data, region, wanted, progress, block)
        )
        if outcome != _DONE:
            return outcome
        progress[_REGION] += 1
        progress[_POSITION] = NO_POSITION
        progress[_RECORD] = 0
    return _DONE


@compiled
def _append_batch(data: Any, region: Any, wanted: Any, progress: Any, block: Any) -> Number:
    """Records of magic 2, laid out as storage/records/record.py shows."""
    end = region[_END]
    at = region[_START] if progress[_POSITION] == NO_POSITION else progress[_POSITION]
    append_timestamp = region[_APPEND_TIMESTAMP]
    while progress[_RECORD] < region[_COUNT]:
        length, body = varint(data, at, end)
        if body == NO_POSITION or length < 1 or length > end - body:
            return _DAMAGED
        next_record = body + length
        delta, where = varint(data, body + 1, next_record)
        timestamp = region[_BASE_TIMESTAMP] + delta
        if append_timestamp != _NO_APPEND_TIMESTAMP:
            timestamp = append_timestamp
        delta, where = varint(data, where, next_record)
        offset = region[_BASE_OFFSET] + delta
        key, key_length = _field(data, where, next_record)
        value, value_length = _field(data, key + max(key_length, 0), next_record)
        headers, where = varint(data, value + max(value_length, 0), next_record)
        if where == NO_POSITION or headers < 0 or headers > next_record - where:
            return _DAMAGED
        if headers == 0 and where != next_record:
            return _DAMAGED
        if _is_wanted(offset, timestamp, wanted):
            if not _fits(key_length, value_length, progress, block):
                return _FULL
            if wanted[_WANT_HEADERS]:
                outcome = _append_headers(data, where, next_record, headers, progress, block)
                if outcome != _DONE:
                    return outcome
            _append_row(
                data, offset, timestamp, region[_TIMESTAMP_TYPE], key, key_length,
                value, value_length, wanted, progress, block,
            )  # fmt: skip
        at = next_record
        progress[_POSITION] = at
        progress[_RECORD] += 1
    return _DONE if at == end else _DAMAGED


@compiled
def _append_messages(data: Any, region: Any, wanted: Any, progress: Any, block: Any) -> Number:
    """Messages of magic 0 and 1, laid out as storage/records/legacy.py shows."""
    end = region[_END]
    if progress[_POSITION] == NO_POSITION:
        shift = _offset_shift(data, region)
        if shift == NO_POSITION:
            return _DAMAGED
        progress[_SHIFT] = shift
        progress[_POSITION] = region[_START]
    at = progress[_POSITION]
    while end - at >= _MESSAGE_OVERHEAD:
        next_message = at + _MESSAGE_OVERHEAD + int32(data, at + 8)
        if next_message > end and region[_IS_WRAPPED]:
            break  # as in any fetch, the last one may be cut off
        magic = byte_at(data, at + 16) if end - at > 16 else 2
        body = at + (26 if magic == 1 else 18)
        if magic > 1 or next_message < body + 8 or next_message > end:
            return _DAMAGED
        key, key_length = _sized_field(data, body, next_message)
        value, value_length = _sized_field(data, key + max(key_length, 0), next_message)
        if value == NO_POSITION:
            return _DAMAGED
        timestamp = int64(data, at + 18) if magic == 1 else np.int64(-1)
        timestamp_type = np.int64(-1) if magic == 0 else region[_TIMESTAMP_TYPE]
        if region[_APPEND_TIMESTAMP] != _NO_APPEND_TIMESTAMP and magic == 1:
            timestamp = region[_APPEND_TIMESTAMP]
        offset = int64(data, at) + progress[_SHIFT]
        if _is_wanted(offset, timestamp, wanted):
            if not _fits(key_length, value_length, progress, block):
                return _FULL
            if wanted[_WANT_HEADERS]:
                _append_headers(data, next_message, next_message, 0, progress, block)
            _append_row(
                data, offset, timestamp, timestamp_type, key, key_length,
                value, value_length, wanted, progress, block,
            )  # fmt: skip
        at = next_message
        progress[_POSITION] = at
    return _DONE


@compiled
def _offset_shift(data: Any, region: Any) -> Number:
    """What to add to the offsets of the messages: within a wrapper of magic 1 they count from its
    first message, and the wrapper's own is that of the last. -1 where that cannot be."""
    if not region[_IS_WRAPPED] or region[_MAGIC] == 0:
        return np.int64(0)
    at = region[_START]
    last = np.int64(-1)
    while region[_END] - at >= _MESSAGE_OVERHEAD:
        length = int32(data, at + 8)
        if length < 14:
            return np.int64(NO_POSITION)
        if at + _MESSAGE_OVERHEAD + length > region[_END]:
            break
        last = int64(data, at)
        at += _MESSAGE_OVERHEAD + length
    if last < 0:
        return np.int64(NO_POSITION)
    if region[_BASE_OFFSET] == 0:
        return np.int64(0)  # some clients leave a produced wrapper's offset at zero
    return max(region[_BASE_OFFSET] - last, np.int64(NO_POSITION))


@compiled
def _is_wanted(offset: Number, timestamp: Number, wanted: Any) -> Number:
    return (
        wanted[_FIRST_OFFSET] <= offset <= wanted[_LAST_OFFSET]
        and wanted[_FIRST_TIMESTAMP] <= timestamp <= wanted[_LAST_TIMESTAMP]
    )


@compiled
def _field(data: Any, at: Number, end: Number) -> Any:
    """Where a field of bytes begins and its length (-1: null); position -1 where it is damaged."""
    length, at = varint(data, at, end)
    if at == NO_POSITION or length > end - at:
        return np.int64(NO_POSITION), np.int64(0)
    return np.int64(at), max(np.int64(length), np.int64(-1))


@compiled
def _sized_field(data: Any, at: Number, end: Number) -> Any:
    """As `_field`, for the lengths of four bytes that old messages have."""
    if at < 0 or end - at < 4:
        return np.int64(NO_POSITION), np.int64(0)
    length = int32(data, at)
    if length > end - at - 4:
        return np.int64(NO_POSITION), np.int64(0)
    return np.int64(at + 4), max(np.int64(length), np.int64(-1))


@compiled
def _fits(key_length: Number, value_length: Number, progress: Any, block: Any) -> Number:
    held = block.capacity
    return (
        progress[_ROWS] < held[_ROWS_HELD]
        and progress[_KEY_BYTES] + key_length <= held[_KEY_BYTES_HELD]
        and progress[_VALUE_BYTES] + value_length <= held[_VALUE_BYTES_HELD]
    )


@compiled
def _append_row(
    data: Any, offset: Number, timestamp: Number, timestamp_type: Number, key: Number,
    key_length: Number, value: Number, value_length: Number, wanted: Any, progress: Any,
    block: Any,
) -> None:  # fmt: skip
    memory, starts = block.memory, block.starts
    row = progress[_ROWS]
    put_int64(memory, starts[_AT_OFFSET] + row * 8, offset)
    milliseconds = min(max(timestamp, -_LARGEST_MS), _LARGEST_MS)
    put_int64(memory, starts[_AT_TIMESTAMP] + row * 8, milliseconds * _US_PER_MS)
    put_int32(memory, starts[_AT_TIMESTAMP_TYPE] + row * 4, timestamp_type)
    if wanted[_WANT_KEY]:
        filled = progress[_KEY_BYTES]
        if key_length >= 0:
            copy_bytes(data, key, key_length, memory, starts[_AT_KEY] + filled)
            _mark(memory, starts[_AT_KEY_BITMAP], row)
            filled += key_length
            progress[_KEY_BYTES] = filled
        else:
            progress[_NULL_KEYS] += 1
        put_int32(memory, starts[_AT_KEY_ENDS] + row * 4 + 4, filled)
    if wanted[_WANT_VALUE]:
        filled = progress[_VALUE_BYTES]
        if value_length >= 0:
            copy_bytes(data, value, value_length, memory, starts[_AT_VALUE] + filled)
            _mark(memory, starts[_AT_VALUE_BITMAP], row)
            filled += value_length
            progress[_VALUE_BYTES] = filled
        else:
            progress[_NULL_VALUES] += 1
        put_int32(memory, starts[_AT_VALUE_ENDS] + row * 4 + 4, filled)
    progress[_ROWS] = row + 1


@compiled
def _append_headers(
    data: Any, at: Number, end: Number, count: Number, progress: Any, block: Any
) -> Number:
    """The headers of one record; a record that has none has null, as in Spark's Kafka source."""
    memory, starts = block.memory, block.starts
    row = progress[_ROWS]
    if count == 0:
        progress[_NULL_HEADERS] += 1
        put_int32(memory, starts[_AT_HEADERS_ENDS] + row * 4 + 4, progress[_HEADERS])
        return _DONE
    outcome = _headers_fit(data, at, end, count, progress, block)
    if outcome != _DONE:
        return outcome
    for slot in range(progress[_HEADERS], progress[_HEADERS] + count):
        key, key_length = _field(data, at, end)
        value, value_length = _field(data, key + key_length, end)
        at = value + max(value_length, 0)
        for index in range(key_length):
            progress[_HAS_WIDE_HEADER_KEY] |= byte_at(data, key + index) >> 7
        filled = progress[_HEADER_KEY_BYTES]
        copy_bytes(data, key, key_length, memory, starts[_AT_HEADER_KEY] + filled)
        progress[_HEADER_KEY_BYTES] = filled + key_length
        put_int32(memory, starts[_AT_HEADER_KEY_ENDS] + slot * 4 + 4, filled + key_length)
        filled = progress[_HEADER_VALUE_BYTES]
        if value_length >= 0:
            copy_bytes(data, value, value_length, memory, starts[_AT_HEADER_VALUE] + filled)
            _mark(memory, starts[_AT_HEADER_VALUE_BITMAP], slot)
            filled += value_length
            progress[_HEADER_VALUE_BYTES] = filled
        else:
            progress[_NULL_HEADER_VALUES] += 1
        put_int32(memory, starts[_AT_HEADER_VALUE_ENDS] + slot * 4 + 4, filled)
    progress[_HEADERS] += count
    _mark(memory, starts[_AT_HEADERS_BITMAP], row)
    put_int32(memory, starts[_AT_HEADERS_ENDS] + row * 4 + 4, progress[_HEADERS])
    return _DONE


@compiled
def _headers_fit(
    data: Any, at: Number, end: Number, count: Number, progress: Any, block: Any
) -> Number:
    """Look at all headers of a record before any is written."""
    key_bytes = progress[_HEADER_KEY_BYTES]
    value_bytes = progress[_HEADER_VALUE_BYTES]
    for _ in range(count):
        key, key_length = _field(data, at, end)
        if key == NO_POSITION or key_length < 0:
            return _DAMAGED
        value, value_length = _field(data, key + key_length, end)
        if value == NO_POSITION:
            return _DAMAGED
        at = value + max(value_length, 0)
        key_bytes += key_length
        value_bytes += max(value_length, 0)
    if at != end:
        return _DAMAGED
    held = block.capacity
    fits = (
        progress[_HEADERS] + count <= held[_HEADERS_HELD]
        and key_bytes <= held[_HEADER_KEY_BYTES_HELD]
        and value_bytes <= held[_HEADER_VALUE_BYTES_HELD]
    )
    return _DONE if fits else _FULL


@compiled
def _mark(memory: Any, bitmap: Number, row: Number) -> None:
    at = bitmap + (row >> 3)
    put_byte(memory, at, byte_at(memory, at) | 1 << (row & 7))
