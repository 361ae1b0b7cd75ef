"""The seam between the log engine and the operating system's files.

Owns descriptors, slices of files and every system call on files that the engine makes, so that
tests can put `FaultyFiles` (faulty_files.py) in place of `Files`. Must not know logs, segments or
record layouts.
"""

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

Buffer = bytes | bytearray | memoryview
AnyPath = str | Path

logger = logging.getLogger(__name__)


class Descriptor:
    """An open file that closes itself when the last reference goes.

    A slice handed to the network keeps its descriptor alive this way, even when the segment has
    been closed, evicted or deleted meanwhile.
    """

    __slots__ = ("_files", "fd", "path")

    def __init__(self, files: "Files", fd: int, path: str) -> None:
        self._files = files
        self.fd = fd
        self.path = path

    def fileno(self) -> int:
        return self.fd

    def read(self, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only where the file ends."""
        data = self._files.pread(self, length, position)
        if len(data) in (length, 0):
            return data
        parts = [data]
        received = len(data)
        while received < length:
            data = self._files.pread(self, length - received, position + received)
            if not data:
                break
            parts.append(data)
            received += len(data)
        return b"".join(parts)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class FileSlice:
    """A run of bytes of an open file, to be sent or read while this object lives."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: Descriptor, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        """The bytes themselves, for those who cannot send from the file."""
        if self.length == 0:
            return b""
        return self.file.read(self.length, self.position)

    def __repr__(self) -> str:
        return f"FileSlice(fd={self.file.fileno()}, {self.position}+{self.length})"


class Files:
    """System calls on files, one method each."""

    def open(self, path: AnyPath, flags: int) -> Descriptor:
        return Descriptor(self, os.open(path, flags | os.O_CLOEXEC, 0o644), str(path))

    def pread(self, file: Descriptor, length: int, position: int) -> bytes:
        return os.pread(file.fd, length, position)

    def pwrite(self, file: Descriptor, data: Buffer, position: int) -> int:
        return os.pwrite(file.fd, data, position)

    def truncate(self, file: Descriptor, length: int) -> None:
        os.ftruncate(file.fd, length)

    def sync(self, file: Descriptor) -> None:
        os.fsync(file.fd)

    def sync_directory(self, directory: AnyPath) -> None:
        """Make renames and new names in a directory durable."""
        self.sync(self.open(directory, os.O_RDONLY))

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        os.replace(source, target)

    def unlink(self, path: AnyPath) -> bool:
        """Remove a file; False if there is none."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def make_directory(self, path: AnyPath) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_tree(self, path: AnyPath) -> None:
        """Remove a directory with all that it holds."""
        shutil.rmtree(path)

    def exists(self, path: AnyPath) -> bool:
        return os.path.lexists(path)

    def size(self, path: AnyPath) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: AnyPath) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: AnyPath, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    @contextmanager
    def scan(self, directory: AnyPath) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of a directory, in the file system's order."""
        with os.scandir(directory) as entries:
            yield entries

    def write_whole(self, path: AnyPath, data: Buffer, *, durable: bool) -> None:
        """Create or overwrite a file with these bytes."""
        descriptor = self.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        view = memoryview(data)
        position = 0
        while position < len(view):
            position += self.pwrite(descriptor, view[position:], position)
        if durable:
            self.sync(descriptor)

    def replace_whole(self, path: AnyPath, data: Buffer, *, durable: bool = True) -> None:
        """Replace a file's content so that a crash leaves either the old or the new one."""
        temporary = f"{path}.tmp"
        self.write_whole(temporary, data, durable=durable)
        self.replace(temporary, path)
        if durable:
            self.sync_directory(os.path.dirname(os.fspath(path)) or ".")

    def read_whole(self, path: AnyPath) -> bytes:
        descriptor = self.open(path, os.O_RDONLY)
        return descriptor.read(os.fstat(descriptor.fileno()).st_size, 0)


@contextmanager
def unless_disk_is_full(what: str) -> Iterator[None]:
    """Go on without something that is only of use, if there is no space for it."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        logger.warning("%s is left out: %s", what, error)


EMPTY_SLICE: Final = FileSlice(Descriptor(Files(), -1, ""), 0, 0)
