"""What a writer meant to append, and what it was told had been appended.

Owns the file in which a writer that may be killed at any moment notes both. Entries go to the
page cache by single writes, so that they outlive the process; of an entry that a kill cut off
nothing is taken over.

Entry, big endian: kind 1, place 1, origin 1, first offset 8, last offset 8, length 4, then the
payload. Only an intent has a payload, only an acknowledgement has offsets.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from storage.append_info import AppendOrigin

_ENTRY: Final = Struct(">bbbqqi")
_INTENT: Final = 1
_ACKNOWLEDGEMENT: Final = 2
_REFUSAL: Final = 3
_ORIGINS: Final = tuple(AppendOrigin)


class Append(NamedTuple):
    """Bytes for one partition; `place` is its number in workload.PARTITIONS."""

    place: int
    origin: AppendOrigin
    payload: bytes


class Acknowledged(NamedTuple):
    """An append with the offsets that the writer was told."""

    append: Append
    first_offset: int
    last_offset: int


class Journal:
    """The writer's side of the file."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def intend(self, append: Append) -> None:
        """Note an append before it is tried."""
        origin = _ORIGINS.index(append.origin)
        head = _ENTRY.pack(_INTENT, append.place, origin, -1, -1, len(append.payload))
        os.write(self._fd, head + append.payload)

    def acknowledge(self, first_offset: int, last_offset: int) -> None:
        """Note that the last append is in the log."""
        os.write(self._fd, _ENTRY.pack(_ACKNOWLEDGEMENT, 0, 0, first_offset, last_offset, 0))

    def refuse(self) -> None:
        """Note that the last append met an error: nobody knows whether it is in the log."""
        os.write(self._fd, _ENTRY.pack(_REFUSAL, 0, 0, -1, -1, 0))

    def close(self) -> None:
        os.close(self._fd)


class JournalContent(NamedTuple):
    """What was acknowledged, in order, and what may or may not be there."""

    acknowledged: list[Acknowledged]
    unresolved: list[Append]


def read_journal(path: Path) -> JournalContent:
    """What a writer that is dead by now has noted."""
    acknowledged: list[Acknowledged] = []
    unresolved: list[Append] = []
    data = path.read_bytes() if path.exists() else b""
    for kind, append, first_offset, last_offset in _entries(data):
        if kind == _INTENT:
            unresolved.append(append)
        elif kind == _ACKNOWLEDGEMENT:
            acknowledged.append(Acknowledged(unresolved.pop(), first_offset, last_offset))
    return JournalContent(acknowledged, unresolved)


def _entries(data: bytes) -> Iterator[tuple[int, Append, int, int]]:
    position = 0
    while len(data) - position >= _ENTRY.size:
        kind, place, origin, first, last, length = _ENTRY.unpack_from(data, position)
        position += _ENTRY.size
        payload = data[position : position + length]
        position += length
        if len(payload) == length:
            yield kind, Append(place, _ORIGINS[origin], payload), first, last
