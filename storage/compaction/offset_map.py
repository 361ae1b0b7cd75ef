"""Which offset is each key's last one in the dirty part of a log.

Owns how memory is shared out. Must not know records or logs.

Keys go into a dict first, which is four times faster than the table that they are moved to when
they have become many, but takes six times the memory. Most logs write the same keys again and
again and never need the table; where there are millions of keys, a map that is full costs one
more copy of the whole log, so that room counts for more than speed.

One byte for each dirty offset says whether the record there is its key's last one. That spares
the second pass the look-ups, and the opening of batches of which everything stays or nothing.
"""

from collections.abc import Sequence
from typing import Final

from storage.compaction.offset_table import NOT_FOUND, OffsetTable

# The part of the memory that the dict may take, and what a key of few bytes takes in it.
_PART_FOR_DICT: Final = 8
_BYTES_PER_DICT_ENTRY: Final = 160
# The part of the memory for marks; offsets beyond have none.
_PART_FOR_MARKS: Final = 16


class OffsetMap:
    """Filled by `put` and `skip_to`, then sealed, then asked.

    `latest_offset`: all from the start up to it was put, or need not be.
    """

    def __init__(
        self, memory_bytes: int, load_factor: float, start_offset: int, end_offset: int
    ) -> None:
        """`start_offset` and `end_offset` bound what will be put."""
        self.latest_offset = NOT_FOUND
        self._start_offset = start_offset
        marks = min(max(end_offset - start_offset, 0), memory_bytes // _PART_FOR_MARKS)
        self._is_last = bytearray(marks)
        for_dict = memory_bytes // _PART_FOR_DICT
        self._most_recent = for_dict // _BYTES_PER_DICT_ENTRY
        self._most_recent_bytes = for_dict
        self._recent: dict[bytes, int] = {}
        self._recent_bytes = 0
        self._table = OffsetTable(memory_bytes - for_dict - marks, load_factor)

    def __len__(self) -> int:
        """The number of keys; those that are both in the dict and in the table count twice."""
        return len(self._recent) + len(self._table)

    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> bool:
        """Take over keys and their offsets, until there is no room: False if some were left."""
        if not keys:
            return True
        if len(self) + len(keys) > self._table.capacity:
            self._move_to_table()
            left = self._table.put(zip(keys, offsets, strict=True))
            if left is not None:
                self.latest_offset = left - 1
                return False
        else:
            self._recent.update(zip(keys, offsets, strict=True))
            self._recent_bytes += sum(map(len, keys))
            if (
                len(self._recent) > self._most_recent
                or self._recent_bytes > self._most_recent_bytes
            ):
                self._move_to_table()
        self.latest_offset = offsets[-1]
        return True

    def skip_to(self, offset: int) -> None:
        """Nothing more is to be put up to and with this offset."""
        self.latest_offset = offset

    def seal(self) -> None:
        """All has been put that there is, or that fits."""
        if len(self._table):
            self._move_to_table()
        marks = len(self._is_last)
        for offsets in (self._recent.values(), self._table.offsets()):
            for offset in offsets:
                if offset - self._start_offset < marks:
                    self._is_last[offset - self._start_offset] = 1

    def find(self, keys: Sequence[bytes]) -> list[int]:
        """The last offset of each key, NOT_FOUND where it was never put."""
        if len(self._table):
            return self._table.find(keys)
        get = self._recent.get
        return [get(key, NOT_FOUND) for key in keys]

    def marks(self, first_offset: int, last_offset: int) -> bytearray | None:
        """For each of these offsets, 1 if it is some key's last one, otherwise 0.

        None if that is not known of all of them.
        """
        start = first_offset - self._start_offset
        end = last_offset + 1 - self._start_offset
        if start < 0 or end > len(self._is_last) or last_offset > self.latest_offset:
            return None
        return self._is_last[start:end]

    def _move_to_table(self) -> None:
        self._table.put(self._recent.items())
        self._recent.clear()
        self._recent_bytes = 0
