"""A segment file batch by batch, damage included.

Owns where batches begin and how far a damaged file can be followed: a batch whose checksum is
wrong is passed over by its length; where there is no batch at all, nothing behind it can be found.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from analytics.logs.places import PlacedFile
from storage.records.batches import Batch, is_intact, parse_header
from storage.records.errors import RecordDataError
from storage.records.layout import BATCH_HEADER_SIZE, LOG_OVERHEAD, BatchHeader

_CHUNK: Final = 4 << 20
_ZERO_CHUNK: Final = 1 << 20


class Walked(NamedTuple):
    """A batch as it was found."""

    position: int
    header: BatchHeader
    is_intact: bool
    data: memoryview


class Ending(NamedTuple):
    """Where the walk ended, and why: None at the end of the file."""

    position: int
    reason: str | None
    is_cut_off: bool = False


class BatchWalk:
    """Iterates over the batches; `ending` tells how that came to an end."""

    def __init__(self, file: PlacedFile, start: int, end: int) -> None:
        self._file = file
        self._start = start
        self._end = end
        self.ending = Ending(start, None)

    def __iter__(self) -> Iterator[Walked]:
        position = self._start
        chunk, start = memoryview(b""), position
        while position < self._end:
            at = position - start
            if len(chunk) - at < min(BATCH_HEADER_SIZE, self._end - position):
                chunk, start, at = self._read(position, _CHUNK), position, 0
            header = self._header(chunk, at, position)
            if header is None:
                return
            size = header.size_in_bytes
            if len(chunk) - at < size:
                chunk, start, at = self._read(position, max(_CHUNK, size)), position, 0
                if len(chunk) < size:
                    self.ending = Ending(position, "the file is shorter than it was", True)
                    return
            data = chunk[at : at + size]
            yield Walked(position, header, is_intact(Batch(header, data)), data)
            position += size
        self.ending = Ending(position, None)

    def ends_with_zeros(self, position: int) -> bool:
        """Whether all that follows is zeros, as preallocation leaves them; a few may begin a
        batch."""
        if self._end - position < BATCH_HEADER_SIZE:
            return False
        while position < self._end:
            data = self._file.read(min(_ZERO_CHUNK, self._end - position), position)
            if not data or data.count(0) != len(data):
                return False
            position += len(data)
        return True

    def _read(self, position: int, size: int) -> memoryview:
        return memoryview(self._file.read(min(size, self._end - position), position))

    def _header(self, chunk: memoryview, at: int, position: int) -> BatchHeader | None:
        left = self._end - position
        if left < LOG_OVERHEAD:
            self.ending = Ending(position, f"{left} bytes are too few for a batch", True)
            return None
        try:
            header = parse_header(chunk, at)
        except RecordDataError as error:
            self.ending = Ending(position, str(error), left < BATCH_HEADER_SIZE)
            return None
        if header.size_in_bytes > left:
            reason = f"a batch of {header.size_in_bytes} bytes has {left} left"
            self.ending = Ending(position, reason, True)
            return None
        return header
