"""The sparse index from offsets to positions in a segment (`.index`).

Owns the layout and the search. An entry says: the append that ends with this offset begins at
this position. Only offsets that are at least `index.interval.bytes` apart have one.

Entry, big endian:

     0                 4            8
    +-----------------+------------+
    | offset - base 4 | position 4 |
    +-----------------+------------+
"""

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import ClassVar, Final

from storage.environment import Environment
from storage.errors import CorruptIndexError
from storage.mapped_index import MappedIndex

_ENTRY: Final = Struct(">ii")
_FIELD: Final = Struct(">i")
_ENTRY_SIZE: Final = _ENTRY.size
_POSITION_FIELD: Final = 4


class OffsetIndex(MappedIndex):
    """Offsets and positions, both growing."""

    __slots__ = ("_last_offset",)

    ENTRY: ClassVar[Struct] = _ENTRY

    def __init__(
        self, environment: Environment, path: str, base_offset: int, max_bytes: int, size: int
    ) -> None:
        super().__init__(environment, path, base_offset, max_bytes, size)
        self._last_offset: int | None = None

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset if there is none."""
        if self._last_offset is None:
            self._last_offset = (
                self.entry(self.entries - 1)[0] if self.entries else self.base_offset
            )
        return self._last_offset

    def entry(self, slot: int) -> tuple[int, int]:
        """Offset and position of an entry."""
        relative_offset, position = _ENTRY.unpack_from(self._mapped(), slot * _ENTRY_SIZE)
        return self.base_offset + relative_offset, position

    def append(self, offset: int, position: int) -> None:
        """Add an entry, which must be above the last one."""
        if self.entries and offset <= self.last_offset:
            raise CorruptIndexError(
                f"Offset {offset} is not above the last one, {self.last_offset}, in {self.path}"
            )
        self._add(_ENTRY.pack(offset - self.base_offset, position))
        self._last_offset = offset

    def lookup(self, offset: int) -> tuple[int, int]:
        """The last entry at or before `offset`; the start of the segment if there is none."""
        slot = self._slot_of(offset)
        return (self.base_offset, 0) if slot < 0 else self.entry(slot)

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at or after a position, if there is one."""
        mapped = self._mapped() if self.entries else b""
        slot = bisect_left(
            range(self.entries),
            position,
            key=lambda slot: _FIELD.unpack_from(mapped, slot * _ENTRY_SIZE + _POSITION_FIELD)[0],
        )
        return self.entry(slot)[0] if slot < self.entries else None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        slot = self._slot_of(offset)
        if slot >= 0 and self.entry(slot)[0] == offset:
            self.keep_entries(slot)
        else:
            self.keep_entries(slot + 1)

    def check(self, segment_size: int) -> None:
        """Refuse an index that cannot belong to a segment of this size."""
        if self.is_torn:
            raise CorruptIndexError(f"{self.path} has a torn last entry")
        if self.entries:
            offset, position = self.entry(self.entries - 1)
            if offset < self.base_offset or (offset == self.base_offset and self.entries > 1):
                raise CorruptIndexError(f"{self.path} does not grow")
            if not 0 <= position < segment_size:
                raise CorruptIndexError(f"{self.path} points past the end of its segment")

    def _slot_of(self, offset: int) -> int:
        """The last entry at or before an offset, -1 if there is none."""
        entries = self.entries
        if not entries:
            return -1
        mapped = self._mapped()
        target = offset - self.base_offset

        def relative_offset(slot: int) -> int:
            found: int = _FIELD.unpack_from(mapped, slot * _ENTRY_SIZE)[0]
            return found

        warm = self._first_warm_entry()
        if relative_offset(warm) <= target:
            return bisect_right(range(entries), target, warm, entries, key=relative_offset) - 1
        return bisect_right(range(entries), target, 0, warm, key=relative_offset) - 1

    def _entries_changed(self) -> None:
        self._last_offset = None
