"""Compiled loops over the bytes of segments: batch headers, records, messages of old formats.

Owns every loop that runs once per batch or per record. Takes and fills plain arrays, and trusts
no length that it reads: whatever the bytes say, it stays within the range that it was given.
Must not know files, Arrow or Spark.

The first call compiles (or loads what an earlier process compiled); see docs/analytics-internals.md
for what that costs and what else was measured.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np

from analytics.decoding.raw_memory import Number, byte_at

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function, and keep the result for later processes where a folder allows it."""
    try:
        return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # no folder for the cache: within an archive, or all are read-only
        return cast("Function", numba.njit(nogil=True, error_model="numpy")(function))


class Header(IntEnum):
    """The columns of a table of batch headers."""

    POSITION = 0
    BASE_OFFSET = 1
    SIZE = 2
    LEADER_EPOCH = 3
    MAGIC = 4
    CRC = 5
    ATTRIBUTES = 6
    LAST_OFFSET = 7
    BASE_TIMESTAMP = 8
    MAX_TIMESTAMP = 9
    PRODUCER_ID = 10
    PRODUCER_EPOCH = 11
    BASE_SEQUENCE = 12
    RECORD_COUNT = 13
    CONTROL_TYPE = 14  # of a control batch, as storage/records/control.py numbers them; else -1


HEADER_COLUMNS: Final = len(Header)


class Stop(IntEnum):
    """Why a walk over batches ended."""

    NEEDS_MORE = 0  # the next batch reaches past the bytes at hand
    FULL = 1  # the table of headers is full
    NO_BATCH = 2  # what lies there cannot be a batch


# Numba takes plain integers as constants, which members of the enums above are not.
_POSITION, _BASE_OFFSET, _SIZE, _LEADER_EPOCH, _MAGIC, _CRC, _ATTRIBUTES = range(7)
_LAST_OFFSET, _BASE_TIMESTAMP, _MAX_TIMESTAMP, _PRODUCER_ID, _PRODUCER_EPOCH = range(7, 12)
_BASE_SEQUENCE, _RECORD_COUNT, _CONTROL_TYPE = 12, 13, 14
_NEEDS_MORE, _TABLE_FULL, _NO_BATCH = 0, 1, 2

_SMALLEST = 26  # a message of magic 0 without key and value
_SMALLEST_1 = 34
_SMALLEST_2 = 61
_MARKER_BATCH = 70  # as much of a control batch as its first record's type needs
NO_POSITION: Final = -1


@compiled
def int16(data: Any, at: Number) -> Number:
    value = byte_at(data, at) << 8 | byte_at(data, at + 1)
    return value - ((value & 0x8000) << 1)


@compiled
def uint32(data: Any, at: Number) -> Number:
    return (
        byte_at(data, at) << 24
        | byte_at(data, at + 1) << 16
        | byte_at(data, at + 2) << 8
        | byte_at(data, at + 3)
    )


@compiled
def int32(data: Any, at: Number) -> Number:
    value = uint32(data, at)
    return value - ((value & 0x80000000) << 1)


@compiled
def int64(data: Any, at: Number) -> Number:
    return uint32(data, at) << 32 | uint32(data, at + 4)


@compiled
def scan_headers(
    data: Any, end: Number, limit: Number, file_position: Number, table: Any, row: Number
) -> Any:
    """Fill the table, from a row on, with the headers of the batches from the first byte on.

    Headers must lie before `end`, where the buffer's content ends; batches must end by `limit`,
    which is `end` for one who wants them whole, or beyond it for one who skips them. Returns the
    next free row, where the walk came to (past `end`, maybe), and why it ended (a Stop).
    `file_position` is where in the file the buffer's first byte lies.
    """
    at = np.int64(0)
    while True:
        if end - at < _SMALLEST:
            return row, at, _NEEDS_MORE
        length = int32(data, at + 8)
        magic = byte_at(data, at + 16)
        size = length + 12
        if magic > 2 or size < (
            _SMALLEST_2 if magic == 2 else _SMALLEST_1 if magic == 1 else _SMALLEST
        ):
            return row, at, _NO_BATCH
        if at + size > limit or end - at < min(size, _MARKER_BATCH):
            return row, at, _NEEDS_MORE
        if row == table.shape[0]:
            return row, at, _TABLE_FULL
        _fill_header(data, at, file_position + at, table[row])
        row += 1
        at += size


@compiled
def _fill_header(data: Any, at: Number, position: Number, header: Any) -> None:
    """One row of the table from the header at `at`, whose magic is known to be 0, 1 or 2."""
    magic = byte_at(data, at + 16)
    header[_POSITION] = position
    header[_BASE_OFFSET] = int64(data, at)
    header[_SIZE] = int32(data, at + 8) + 12
    header[_MAGIC] = magic
    if magic == 2:
        header[_LEADER_EPOCH] = int32(data, at + 12)
        header[_CRC] = uint32(data, at + 17)
        header[_ATTRIBUTES] = int16(data, at + 21)
        header[_LAST_OFFSET] = header[_BASE_OFFSET] + int32(data, at + 23)
        header[_BASE_TIMESTAMP] = int64(data, at + 27)
        header[_MAX_TIMESTAMP] = int64(data, at + 35)
        header[_PRODUCER_ID] = int64(data, at + 43)
        header[_PRODUCER_EPOCH] = int16(data, at + 51)
        header[_BASE_SEQUENCE] = int32(data, at + 53)
        header[_RECORD_COUNT] = int32(data, at + 57)
        header[_CONTROL_TYPE] = _control_type(data, at, header)
        return
    timestamp = int64(data, at + 18) if magic == 1 else -1
    attributes = byte_at(data, at + 17) & 0x0F
    header[_LEADER_EPOCH] = -1
    header[_CRC] = uint32(data, at + 12)
    header[_ATTRIBUTES] = attributes
    header[_LAST_OFFSET] = header[_BASE_OFFSET]
    header[_BASE_TIMESTAMP] = timestamp
    header[_MAX_TIMESTAMP] = timestamp
    header[_PRODUCER_ID] = -1
    header[_PRODUCER_EPOCH] = -1
    header[_BASE_SEQUENCE] = -1
    header[_RECORD_COUNT] = -1 if attributes & 7 else 1
    header[_CONTROL_TYPE] = -1


@compiled
def _control_type(data: Any, at: Number, header: Any) -> Number:
    """What the first record of a control batch says, by its key: version 2, type 2."""
    if header[_ATTRIBUTES] & 0x27 != 0x20 or header[_SIZE] < _MARKER_BATCH:
        return -1
    start = at + _SMALLEST_2
    end = at + _MARKER_BATCH
    _, start = varint(data, start, end)
    _, start = varint(data, start + 1, end)
    _, start = varint(data, start, end)
    key_length, start = varint(data, start, end)
    if start == NO_POSITION or key_length < 4 or end - start < 4:
        return -1
    control_type = byte_at(data, start + 2) << 8 | byte_at(data, start + 3)
    return control_type if control_type <= 1 else -1


@compiled
def varint(data: Any, at: Number, end: Number) -> Any:
    """A zigzag number and the position after it, which is -1 where there is none."""
    number = np.int64(0)
    shift = 0
    if at < 0:
        return number, np.int64(NO_POSITION)
    while at < end and shift < 70:
        byte = byte_at(data, at)
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1), np.int64(at)
        shift += 7
    return np.int64(0), np.int64(NO_POSITION)
