"""The sparse index from timestamps to offsets in a segment (`.timeindex`).

Owns the layout and the search. An entry says: no record before this offset is younger than this
timestamp, and the batch that ends with this offset has it. Timestamps grow strictly.

Entry, big endian:

     0             8                 12
    +-------------+-----------------+
    | timestamp 8 | offset - base 4 |
    +-------------+-----------------+
"""

from bisect import bisect_right
from struct import Struct
from typing import ClassVar, Final

from storage.environment import Environment
from storage.errors import CorruptIndexError
from storage.mapped_index import MappedIndex
from storage.records.layout import NO_TIMESTAMP

_ENTRY: Final = Struct(">qi")
_TIMESTAMP: Final = Struct(">q")
_RELATIVE_OFFSET: Final = Struct(">i")
_ENTRY_SIZE: Final = _ENTRY.size
_OFFSET_FIELD: Final = 8


class TimeIndex(MappedIndex):
    """Timestamps and offsets, both growing."""

    __slots__ = ("_last_entry",)

    ENTRY: ClassVar[Struct] = _ENTRY

    def __init__(
        self, environment: Environment, path: str, base_offset: int, max_bytes: int, size: int
    ) -> None:
        super().__init__(environment, path, base_offset, max_bytes, size)
        self._last_entry: tuple[int, int] | None = None

    @property
    def last_entry(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; (-1, base offset) if there is none."""
        if self._last_entry is None:
            self._last_entry = (
                self.entry(self.entries - 1) if self.entries else (NO_TIMESTAMP, self.base_offset)
            )
        return self._last_entry

    def entry(self, slot: int) -> tuple[int, int]:
        """Timestamp and offset of an entry."""
        timestamp, relative_offset = _ENTRY.unpack_from(self._mapped(), slot * _ENTRY_SIZE)
        return timestamp, self.base_offset + relative_offset

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is above the last one's."""
        last_timestamp, last_offset = self.last_entry
        if timestamp <= last_timestamp:
            return
        if self.entries and offset < last_offset:
            raise CorruptIndexError(
                f"Offset {offset} is below the last one, {last_offset}, in {self.path}"
            )
        self._add(_ENTRY.pack(timestamp, offset - self.base_offset))
        self._last_entry = (timestamp, offset)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The last entry at or before a timestamp; (-1, base offset) if there is none.

        No record before its offset has a timestamp above the entry's.
        """
        if not self.entries:
            return NO_TIMESTAMP, self.base_offset
        mapped = self._mapped()

        def timestamp_of(slot: int) -> int:
            found: int = _TIMESTAMP.unpack_from(mapped, slot * _ENTRY_SIZE)[0]
            return found

        slot = bisect_right(range(self.entries), timestamp, key=timestamp_of) - 1
        return (NO_TIMESTAMP, self.base_offset) if slot < 0 else self.entry(slot)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        if not self.entries:
            return
        mapped = self._mapped()
        target = offset - self.base_offset

        def relative_offset(slot: int) -> int:
            found: int = _RELATIVE_OFFSET.unpack_from(mapped, slot * _ENTRY_SIZE + _OFFSET_FIELD)[0]
            return found

        self.keep_entries(bisect_right(range(self.entries), target - 1, key=relative_offset))

    def check(self) -> None:
        """Refuse an index that contradicts itself."""
        if self.is_torn:
            raise CorruptIndexError(f"{self.path} has a torn last entry")
        if self.entries:
            first_timestamp, _ = self.entry(0)
            last_timestamp, last_offset = self.entry(self.entries - 1)
            if last_timestamp < first_timestamp or last_offset < self.base_offset:
                raise CorruptIndexError(f"{self.path} does not grow")

    def _entries_changed(self) -> None:
        self._last_entry = None
