"""Walks over a segment's batches in windows of memory, whatever the size of the segment.

Owns the buffers that a file is read into. `HeaderWindows` reads as little as headers need,
`BatchWindows` whole batches. Both stop at what is no whole batch, and say where and why.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from analytics.decoding.header_kernel import HEADER_COLUMNS, Stop, scan_headers

_ROWS: Final = 4096
_WINDOW_BYTES: Final = 1 << 22
_DENSE_READ: Final = 256 * 1024
_SPARSE_READ: Final = 128
# From this many bytes per batch on, headers are read one by one: a read costs as much as copying
# some twenty thousand bytes.
_SPARSE_BATCH: Final = 24 * 1024

_LENGTH: Final = Struct(">i")
_LENGTH_POSITION: Final = 8
_OVERHEAD: Final = 12


class ReadableFile(Protocol):
    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer from a position; less than all only where the file ends."""


class Window(NamedTuple):
    """Some batches in a row: their headers, and (of `BatchWindows`) the bytes of the file from
    `file_position` on. The bytes are good until the next window is asked for."""

    headers: Any
    data: Any
    file_position: int


class Walk:
    """Where a walk stands, and what it has found there once it has ended."""

    def __init__(self, file: ReadableFile, start: int, end: int) -> None:
        self._file = file
        self.position = start
        self.end = end
        self.stop = Stop.NEEDS_MORE

    @property
    def is_complete(self) -> bool:
        """Whether the walk came to its end, and not to something that is no whole batch."""
        return self.position >= self.end

    def _read(self, data: Any, length: int) -> int:
        """Read at the current position; the file may have been cut off meanwhile."""
        wanted = min(length, self.end - self.position)
        received = self._file.read_into(memoryview(data)[:wanted], self.position)
        if received < wanted:
            self.end = self.position + received
        return received

    def is_zero_from_here(self) -> bool:
        """Whether only zeros are left: the unused part of a preallocated file."""
        data: Any = np.empty(_DENSE_READ, np.uint8)
        position = self.position
        while position < self.end:
            wanted = min(len(data), self.end - position)
            received = self._file.read_into(memoryview(data)[:wanted], position)
            if data[:received].any():
                return False
            if received < wanted:
                break
            position += received
        return True


class HeaderWindows(Walk):
    """Headers alone: bodies are skipped where batches are large."""

    def __iter__(self) -> Iterator[Window]:
        data: Any = np.empty(_DENSE_READ, np.uint8)
        table = np.empty((_ROWS, HEADER_COLUMNS), np.int64)
        row = 0
        wanted = _DENSE_READ
        while self.position < self.end:
            length = self._read(data, wanted)
            first = row
            limit = self.end - self.position
            row, at, stop = scan_headers(data, length, limit, self.position, table, row)
            self.stop = Stop(stop)
            self.position += at
            if stop == Stop.FULL:
                yield Window(table[:row], data[:0], self.position)
                table = np.empty_like(table)
                row = 0
            elif stop == Stop.NO_BATCH or row == first:
                break
            else:
                is_sparse = at >= (row - first) * _SPARSE_BATCH
                wanted = _SPARSE_READ if is_sparse else _DENSE_READ
        if row:
            yield Window(table[:row], data[:0], self.position)


class BatchWindows(Walk):
    """Whole batches. The window grows for a batch that is larger."""

    def __iter__(self) -> Iterator[Window]:
        data: Any = np.empty(min(_WINDOW_BYTES, max(self.end - self.position, 1)), np.uint8)
        table = np.empty((_ROWS, HEADER_COLUMNS), np.int64)
        while self.position < self.end:
            length = self._read(data, len(data))
            rows, at, stop = scan_headers(data, length, length, self.position, table, 0)
            self.stop = Stop(stop)
            if rows:
                yield Window(table[:rows], data, self.position)
                self.position += at
            elif stop == Stop.NO_BATCH or not (needed := self._larger(data, length)):
                return
            else:
                data = np.empty(needed, np.uint8)

    def _larger(self, data: Any, length: int) -> int:
        """How large a window must be for the batch at hand; 0 if it is cut off."""
        if length < _LENGTH_POSITION + _LENGTH.size:
            return 0
        size = _LENGTH.unpack_from(data, _LENGTH_POSITION)[0] + _OVERHEAD
        return size if len(data) < size <= self.end - self.position else 0
