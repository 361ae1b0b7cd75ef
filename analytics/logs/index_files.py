"""The sparse indexes of a segment, read where they lie and trusted in nothing.

Owns the search in `.index` and `.timeindex` files of any place, by a few small reads: the files of
an active segment are megabytes of zeros behind a few entries, and they may be missing, cut or
wrong. So an answer is a hint: whoever uses a position looks what is there. Layouts are those of
storage/offset_index.py and storage/time_index.py.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from analytics.logs.places import PlacedFile, open_file

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class IndexEntry(NamedTuple):
    """An entry of either index: an offset and a position, or a timestamp and an offset."""

    key: int
    target: int


class IndexFile:
    """The entries of one index file; none if there is no such file."""

    def __init__(self, location: str, entry: Struct) -> None:
        self._entry = entry
        self._file: PlacedFile | None
        try:
            self._file = open_file(location)
        except OSError:
            self._file = None
        self._capacity = self._file.size // entry.size if self._file is not None else 0
        self._count: int | None = None

    @property
    def count(self) -> int:
        """How many entries there are: unused ones, at the end, are all zero."""
        if self._count is None:
            self._count = self._first_slot(self._capacity, lambda entry: not any(entry))
        return self._count

    def entry(self, slot: int) -> IndexEntry:
        assert self._file is not None
        data = self._file.read(self._entry.size, slot * self._entry.size)
        if len(data) < self._entry.size:  # cut off meanwhile: nothing is there any more
            return IndexEntry(0, 0)
        return IndexEntry(*self._entry.unpack(data))

    @property
    def last(self) -> IndexEntry | None:
        return self.entry(self.count - 1) if self.count else None

    def last_where(self, holds: Callable[[IndexEntry], bool]) -> IndexEntry | None:
        """The last entry of those at the start for which something holds."""
        slot = self._first_slot(self.count, lambda entry: not holds(entry))
        return self.entry(slot - 1) if slot else None

    def first_where(self, holds: Callable[[IndexEntry], bool]) -> IndexEntry | None:
        """The first entry from which on something holds."""
        slot = self.first_slot_where(holds)
        return self.entry(slot) if slot < self.count else None

    def first_slot_where(self, holds: Callable[[IndexEntry], bool]) -> int:
        """The number of that entry; the number of entries if there is none."""
        return self._first_slot(self.count, holds)

    def _first_slot(self, count: int, holds: Callable[[IndexEntry], bool]) -> int:
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if holds(self.entry(middle)):
                high = middle
            else:
                low = middle + 1
        return low


def offset_index(location: str) -> IndexFile:
    """Entries of an `.index`: offset less the segment's base offset, and position."""
    return IndexFile(location, _OFFSET_ENTRY)


def time_index(location: str) -> IndexFile:
    """Entries of a `.timeindex`: timestamp, and offset less the segment's base offset."""
    return IndexFile(location, _TIME_ENTRY)
