"""A hash table from keys to offsets, for millions of keys in a bounded piece of memory.

Owns the layout and the search. Must not know what the offsets mean.

A slot takes three signed 64-bit numbers, 24 bytes as in Kafka's own map:

    first hash of the key | second hash of the key | offset + 1 (0: the slot is free)

Keys themselves are not kept: 128 bits of hash stand for them. Both are Python's own hash of
bytes (SipHash with a secret of the process), of the key and of the key with a byte behind it, so
that nobody can choose keys that collide.
"""

from array import array
from collections.abc import Iterable
from math import isqrt
from typing import Final

BYTES_PER_SLOT: Final = 24
NOT_FOUND: Final = -1

_FIELDS: Final = 3
_SALT: Final = b"\0"
# The table begins small and grows by this factor, so that few keys take little memory, and the
# old table is but a fraction of the new one while entries move over.
_GROWTH: Final = 8
_SLOTS_TO_BEGIN_WITH: Final = 4096
_FEWEST_SLOTS: Final = 3
# How full it gets before it grows; the last table may get fuller.
_EASY_LOAD: Final = 0.5


class OffsetTable:
    """Key to offset, for at most `capacity` keys."""

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        slots = memory_bytes // BYTES_PER_SLOT
        if slots < _FEWEST_SLOTS:
            raise ValueError(f"{memory_bytes} bytes are too few for a table of keys")
        # Numbers of slots from the largest table down to the one to begin with.
        self._sizes_to_come = [_prime_at_most(slots)]
        while (slots := slots // _GROWTH) >= _SLOTS_TO_BEGIN_WITH:
            self._sizes_to_come.append(_prime_at_most(slots))
        most = self._sizes_to_come[0]
        self.capacity = max(min(int(most * load_factor), most - 1), 1)
        self._size = 0
        self._slots = 0
        self._limit = 0
        self._table = array("q")

    def __len__(self) -> int:
        return self._size

    def put(self, entries: Iterable[tuple[bytes, int]]) -> int | None:
        """Take over keys and offsets; the offset of the first that finds no room, if one does."""
        table, slots, limit, size = self._table, self._slots, self._limit, self._size
        for key, offset in entries:
            if size >= limit:
                self._size = size
                if size >= self.capacity:
                    return offset
                self._grow()
                table, slots, limit = self._table, self._slots, self._limit
            first = hash(key)
            second = hash(key + _SALT)
            slot = first % slots
            while table[(at := slot * _FIELDS) + 2]:
                if table[at] == first and table[at + 1] == second:
                    break
                slot = (slot + second % (slots - 1) + 1) % slots
            else:
                table[at] = first
                table[at + 1] = second
                size += 1
            table[at + 2] = offset + 1
        self._size = size
        return None

    def find(self, keys: Iterable[bytes]) -> list[int]:
        """The offset of each key, NOT_FOUND where it was never put."""
        table, slots = self._table, self._slots
        offsets = []
        for key in keys:
            first = hash(key)
            second = hash(key + _SALT)
            slot = first % slots
            while stored := table[(at := slot * _FIELDS) + 2]:
                if table[at] == first and table[at + 1] == second:
                    break
                slot = (slot + second % (slots - 1) + 1) % slots
            offsets.append(stored - 1)
        return offsets

    def offsets(self) -> Iterable[int]:
        """The offsets of all keys, in no order."""
        return (stored - 1 for stored in self._table[2::_FIELDS] if stored)

    def _grow(self) -> None:
        old = self._table
        slots = self._slots = self._sizes_to_come.pop()
        table = self._table = array("q", (0,)) * (slots * _FIELDS)
        self._limit = int(slots * _EASY_LOAD) if self._sizes_to_come else self.capacity
        for at in range(0, len(old), _FIELDS):
            entry = old[at : at + _FIELDS]
            if entry[2]:
                slot = entry[0] % slots
                while table[slot * _FIELDS + 2]:
                    slot = (slot + entry[1] % (slots - 1) + 1) % slots
                table[slot * _FIELDS : (slot + 1) * _FIELDS] = entry


def _prime_at_most(number: int) -> int:
    """With a prime number of slots, steps of any size come by all of them."""
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number -= 1
    return number
