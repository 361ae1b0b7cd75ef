"""A preallocated, memory-mapped file of fixed-size entries: what both indexes have in common.

Owns the file's size, its mapping and the number of entries. Must not know what the entries mean:
offset_index.py and time_index.py do.

The file is created at segment.index.bytes (sparse) and cut to its entries when the segment is
rolled or closed. It is mapped only when it is needed, and unmapped again when descriptors run
short: an idle partition holds no mapping at all.
"""

import mmap
import os
from struct import Struct
from typing import ClassVar, Final

from storage.environment import Environment

# Blocks are set aside ahead of the writes in steps of this size. A mapped write into a hole of
# the file on a full disk would kill the process with SIGBUS; setting aside fails with ENOSPC.
_ALLOCATION_STEP: Final = 4096
# Look-ups near the end, by far the most frequent, stay within these last bytes of the file, so
# that their pages remain in memory (Kafka's reasoning and figure).
_WARM_BYTES: Final = 8192


class MappedIndex:
    """Entries of one size in a mapped file; subclasses say what they hold."""

    __slots__ = (
        "_allocated",
        "_environment",
        "_file_size",
        "_map",
        "_map_size",
        "base_offset",
        "entries",
        "is_torn",
        "max_bytes",
        "max_entries",
        "path",
        "recently_used",
    )

    ENTRY: ClassVar[Struct]

    def __init__(
        self, environment: Environment, path: str, base_offset: int, max_bytes: int, size: int
    ) -> None:
        """Take an existing file of `size` bytes; all of it is taken to be entries."""
        self._environment = environment
        self.path = path
        self.base_offset = base_offset
        self.max_bytes = max_bytes - max_bytes % self.ENTRY.size
        self.max_entries = max_bytes // self.ENTRY.size
        self.entries = size // self.ENTRY.size
        self.is_torn = size % self.ENTRY.size != 0
        self._file_size = size
        self._map: mmap.mmap | None = None
        self._map_size = 0
        self._allocated = self.entries * self.ENTRY.size
        self.recently_used = False

    def create(self) -> None:
        """Make the file anew: preallocated, without entries."""
        descriptor = self._environment.files.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._environment.files.truncate(descriptor, self.max_bytes)
        self._file_size = self.max_bytes
        self.entries = 0
        self.is_torn = False
        self._allocated = 0
        self._entries_changed()

    @property
    def size_in_bytes(self) -> int:
        return self.entries * self.ENTRY.size

    def reserve(self) -> None:
        """Make sure that the next entry can be written, whatever happens to the disk.

        Appending does so as well; called before, it lets an error come while nothing has changed.
        """
        end = (self.entries + 1) * self.ENTRY.size
        if self._map is None or self._map_size < end:
            self._map_for_append()
        if end > self._allocated:
            self._allocate(end)

    def trim(self) -> None:
        """Cut the file to its entries."""
        self.release()
        self._resize(self.size_in_bytes)
        self._allocated = self.size_in_bytes

    def reset(self) -> None:
        """Drop all entries; the blocks that they had are kept, for the disk may be full."""
        self.release()
        self._resize(self.max_bytes)
        self.is_torn = False
        self._allocated = 0
        self.keep_entries(0)

    def release(self) -> None:
        """Unmap; the next use maps again."""
        if self._map is not None:
            self._map.close()
            self._map = None
            self._map_size = 0
            self._environment.open_files.closed(self)

    def sync(self) -> None:
        """Write the entries to the disk; may run in a thread while entries are added.

        On a descriptor of its own, because mmap.flush() would keep all threads waiting.
        """
        files = self._environment.files
        descriptor = files.open(self.path, os.O_RDWR)
        files.sync(descriptor)

    def keep_entries(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        self.entries = count
        self._entries_changed()

    def _entries_changed(self) -> None:
        """A hook: entries were dropped, so what is known of the last one is stale."""

    def _mapped(self) -> mmap.mmap:
        """The mapping; at least all entries can be read from it."""
        self.recently_used = True
        return self._map if self._map is not None else self._open_map(self.size_in_bytes)

    def _map_for_append(self) -> None:
        self.release()
        self._resize(self.max_bytes)
        self._open_map(self.max_bytes)

    def _resize(self, size: int) -> None:
        if size != self._file_size:
            files = self._environment.files
            descriptor = files.open(self.path, os.O_RDWR | os.O_CREAT)
            files.truncate(descriptor, size)
            self._file_size = size

    def _open_map(self, size: int) -> mmap.mmap:
        descriptor = self._environment.files.open(self.path, os.O_RDWR)
        self._map = mmap.mmap(descriptor.fileno(), size)
        self._map_size = size
        self.recently_used = True
        self._environment.open_files.opened(self)
        return self._map

    def _allocate(self, end: int) -> None:
        files = self._environment.files
        descriptor = files.open(self.path, os.O_RDWR)
        target = min(-(-end // _ALLOCATION_STEP) * _ALLOCATION_STEP, self.max_bytes)
        files.allocate(descriptor, self._allocated, target - self._allocated)
        self._allocated = target

    def _first_warm_entry(self) -> int:
        return max(0, self.entries - 1 - _WARM_BYTES // self.ENTRY.size)
