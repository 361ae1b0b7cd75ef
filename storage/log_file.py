"""The `.log` file of a segment: bytes at the end, a name, a descriptor.

Owns writing whole or not at all, cutting, and the descriptor that is opened when it is needed
and given back when descriptors run short. Must not know batches, offsets or indexes.
"""

import os
from typing import Final

from storage.environment import Environment
from storage.files import Buffer, Descriptor
from storage.segment_files import LOG_KIND, segment_path

_CREATE_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_TRUNC


class LogFile:
    """A file that grows at its end."""

    __slots__ = (
        "_descriptor",
        "_environment",
        "_is_name_synced",
        "_is_preallocated",
        "base_offset",
        "directory",
        "recently_used",
        "size",
        "suffix",
    )

    def __init__(
        self, environment: Environment, directory: str, base_offset: int, suffix: str, size: int
    ) -> None:
        """Take an existing file of `size` bytes."""
        self._environment = environment
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.size = size
        self.recently_used = False
        self._descriptor: Descriptor | None = None
        # Whether the directory's entry for the file is on the disk, not only the file.
        self._is_name_synced = False
        self._is_preallocated = False

    def path(self, kind: str = LOG_KIND) -> str:
        return segment_path(self.directory, self.base_offset, kind, self.suffix)

    @property
    def modified_ms(self) -> int:
        return self._environment.files.modified_ms(self.path())

    def create_file(self, preallocated_bytes: int = 0) -> None:
        """Make the file anew; one that lies in the way is overwritten."""
        files = self._environment.files
        descriptor = files.open(self.path(), _CREATE_FLAGS)
        if preallocated_bytes:
            files.truncate(descriptor, preallocated_bytes)
            self._is_preallocated = True
        self._hold(descriptor)

    def write(self, data: Buffer) -> None:
        """Write at the end; either all of it is there afterwards, or none."""
        position = self.size
        length = len(data)
        files = self._environment.files
        self.recently_used = True
        file = self._descriptor or self._open()
        try:
            written = files.pwrite(file, data, position)
            while written < length:
                rest = memoryview(data)[written:]
                written += files.pwrite(file, rest, position + written)
        except OSError:
            # Making a file shorter needs no disk space.
            files.truncate(file, position)
            raise
        self.size = position + length

    def cut(self, size: int) -> None:
        """Make the file shorter, or drop what was preallocated behind its end."""
        self._environment.files.truncate(self.descriptor(), size)
        self.size = size
        self._is_preallocated = False

    def sync_file(self) -> None:
        """Bring the file and its name to the disk; may run in a thread."""
        files = self._environment.files
        descriptor = self._descriptor or files.open(self.path(), os.O_RDWR)
        files.sync(descriptor)
        if not self._is_name_synced:
            files.sync_directory(self.directory)
            self._is_name_synced = True

    def descriptor(self) -> Descriptor:
        self.recently_used = True
        return self._descriptor or self._open()

    def release(self) -> None:
        """Drop the descriptor; slices that were handed out keep theirs."""
        if self._descriptor is not None:
            self._descriptor = None
            self._environment.open_files.closed(self)

    def _open(self) -> Descriptor:
        return self._hold(self._environment.files.open(self.path(), os.O_RDWR))

    def _hold(self, descriptor: Descriptor) -> Descriptor:
        self._descriptor = descriptor
        self._environment.open_files.opened(self)
        return descriptor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path()}, {self.size} bytes)"
