"""A preallocated file of fixed-size entries that is searched through a memory map.

Owns the file's size, its descriptor, its mapping and the number of entries: what both indexes
have in common. Must not know what the entries mean: offset_index.py and time_index.py do.

The file is created at segment.index.bytes (sparse) and cut to its entries when the segment is
rolled or closed. Entries are written with pwrite, not through the map: a first write to a mapped
page waits for the file system's journal (7 to 12 ms were seen while another process flushed,
against 10 us for pwrite), and on a full disk it kills the process with SIGBUS instead of failing
with ENOSPC. The map is made when a look-up needs it; an idle partition holds nothing open.
"""

import errno
import mmap
import os
from struct import Struct
from typing import ClassVar, Final

from storage.environment import Environment
from storage.files import Descriptor

# Look-ups near the end, by far the most frequent, stay within these last bytes of the file, so
# that their pages remain in memory (Kafka's reasoning and figure).
_WARM_BYTES: Final = 8192


class MappedIndex:
    """Entries of one size in a file; subclasses say what they hold."""

    __slots__ = (
        "_descriptor",
        "_environment",
        "_file_size",
        "_is_synced",
        "_map",
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
        self.max_entries = max_bytes // self.ENTRY.size
        self.max_bytes = self.max_entries * self.ENTRY.size
        self.entries = size // self.ENTRY.size
        self.is_torn = size % self.ENTRY.size != 0
        self.recently_used = False
        self._file_size = size
        self._is_synced = True
        self._descriptor: Descriptor | None = None
        self._map: mmap.mmap | None = None

    @property
    def size_in_bytes(self) -> int:
        return self.entries * self.ENTRY.size

    def create(self) -> None:
        """Make the file anew: preallocated, without entries."""
        files = self._environment.files
        files.truncate(files.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), self.max_bytes)
        self._file_size = self.max_bytes
        self._is_synced = False
        self.is_torn = False
        self.keep_entries(0)

    def reset(self) -> None:
        """Drop all entries; the blocks that they had are kept, for the disk may be full."""
        self.release()
        self._resize(self.max_bytes)
        self.is_torn = False
        self.keep_entries(0)

    def trim(self) -> None:
        """Cut the file to its entries."""
        self.release()
        self._resize(self.size_in_bytes)

    def keep_entries(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        self.entries = count
        self._entries_changed()

    def release(self) -> None:
        """Close and unmap; the next use opens and maps again.

        Nothing is closed under the feet of another thread: a search keeps the map that it has.
        """
        if self._map is not None or self._descriptor is not None:
            self._map = None
            self._descriptor = None
            self._environment.open_files.closed(self)

    def sync(self) -> None:
        """Write the entries to the disk; may run in a thread while entries are added."""
        if self._is_synced:
            return
        self._is_synced = True
        files = self._environment.files
        try:
            files.sync(self._descriptor or files.open(self.path, os.O_RDWR))
        except OSError:
            self._is_synced = False
            raise

    def _entries_changed(self) -> None:
        """A hook: entries were dropped, so what is known of the last one is stale."""

    def _add(self, entry: bytes) -> None:
        """Write an entry behind the last one."""
        self.recently_used = True
        if self._file_size < self.max_bytes:
            self.release()
            self._resize(self.max_bytes)
        descriptor = self._descriptor or self._open_for_writing()
        written = self._environment.files.pwrite(descriptor, entry, self.size_in_bytes)
        if written != len(entry):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self.entries += 1
        self._is_synced = False

    def _mapped(self) -> mmap.mmap:
        """The mapping of the whole file as it is now; there must be entries."""
        self.recently_used = True
        mapped = self._map
        if mapped is None:
            # The mapping keeps a descriptor of its own; that for writing is not needed here.
            files = self._environment.files
            descriptor = self._descriptor or files.open(self.path, os.O_RDONLY)
            mapped = mmap.mmap(descriptor.fileno(), self._file_size, access=mmap.ACCESS_READ)
            self._map = mapped
            self._environment.open_files.opened(self)
        return mapped

    def _open_for_writing(self) -> Descriptor:
        descriptor = self._environment.files.open(self.path, os.O_RDWR)
        self._descriptor = descriptor
        self._environment.open_files.opened(self)
        return descriptor

    def _resize(self, size: int) -> None:
        if size != self._file_size:
            files = self._environment.files
            files.truncate(files.open(self.path, os.O_RDWR | os.O_CREAT), size)
            self._file_size = size
            self._is_synced = False

    def _first_warm_entry(self) -> int:
        return max(0, self.entries - 1 - _WARM_BYTES // self.ENTRY.size)
