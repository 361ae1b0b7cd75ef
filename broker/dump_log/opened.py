"""Files opened for reading only, as they were when the dump of them began.

Owns opening, sizes and entries of fixed size. Must not know what entries mean.
"""

import os
from collections.abc import Iterator
from struct import Struct
from typing import Final

from storage.files import Descriptor, Files

_ENTRIES_AT_A_TIME: Final = 8192


class _SteadyDescriptor(Descriptor):
    """Reads all that is asked for: a file that a broker cuts meanwhile is told of, not searched."""

    __slots__ = ()

    def read(self, length: int, position: int) -> bytes:
        data = super().read(length, position)
        if len(data) < length:
            raise OSError("it became shorter while it was read")
        return data


class OpenedFile:
    """A file and its size; what a running broker appends later is left out."""

    __slots__ = ("descriptor", "path", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = _SteadyDescriptor(Files(), os.open(path, os.O_RDONLY), path)
        self.size = os.fstat(self.descriptor.fileno()).st_size

    def read(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only where the file ends."""
        return self.descriptor.read(min(length, self.size - position), position)


class EntryFile(OpenedFile):
    """A file of entries of one size, each of two numbers."""

    __slots__ = ("_layout", "count")

    def __init__(self, path: str, layout: Struct) -> None:
        super().__init__(path)
        self._layout = layout
        self.count = self.size // layout.size

    @property
    def torn_bytes(self) -> int:
        return self.size % self._layout.size

    def __getitem__(self, slot: int) -> tuple[int, int]:
        size = self._layout.size
        first, second = self._layout.unpack(self.descriptor.read(size, slot * size))
        return first, second

    def __iter__(self) -> Iterator[tuple[int, int]]:
        size = self._layout.size
        for start in range(0, self.count, _ENTRIES_AT_A_TIME):
            wanted = min(_ENTRIES_AT_A_TIME, self.count - start)
            data = self.descriptor.read(wanted * size, start * size)
            yield from self._layout.iter_unpack(data)
