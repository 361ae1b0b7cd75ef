"""A filesystem that breaks when it is told to, for tests.

Owns the injection of I/O errors and of a full disk at the seam that `Files` is. Everything that
is not told to fail happens for real.
"""

import errno
import os
from dataclasses import dataclass

from storage.files import AnyPath, Buffer, Descriptor, Files


@dataclass(slots=True)
class Fault:
    """An error for some calls: those of one operation on paths that contain a text."""

    operation: str
    number: int = errno.EIO
    path_contains: str = ""
    skip: int = 0
    times: int | None = None

    def applies(self, operation: str, path: str) -> bool:
        """Whether this call fails; each call that matches is counted."""
        if operation != self.operation or self.path_contains not in path or self.times == 0:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultyFiles(Files):
    """Real files with faults.

    files.faults.append(Fault("sync", path_contains="events-0"))
    files.space_left = 100        # bytes until the disk is full; None: plenty
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.space_left: int | None = None
        # Every call that went through, as (operation, path).
        self.calls: list[tuple[str, str]] = []

    def open(self, path: AnyPath, flags: int) -> Descriptor:
        self._meet("open", str(path))
        return super().open(path, flags)

    def pread(self, file: Descriptor, length: int, position: int) -> bytes:
        self._meet("pread", file.path)
        return super().pread(file, length, position)

    def pwrite(self, file: Descriptor, data: Buffer, position: int) -> int:
        self._meet("pwrite", file.path)
        fitting = self._take_space(len(data))
        return super().pwrite(file, memoryview(data)[:fitting], position)

    def truncate(self, file: Descriptor, length: int) -> None:
        self._meet("truncate", file.path)
        super().truncate(file, length)

    def sync(self, file: Descriptor) -> None:
        self._meet("sync", file.path)
        super().sync(file)

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        self._meet("replace", str(target))
        super().replace(source, target)

    def unlink(self, path: AnyPath) -> bool:
        self._meet("unlink", str(path))
        return super().unlink(path)

    def make_directory(self, path: AnyPath) -> None:
        self._meet("make_directory", str(path))
        super().make_directory(path)

    def _meet(self, operation: str, path: str) -> None:
        for fault in self.faults:
            if fault.applies(operation, path):
                raise OSError(fault.number, os.strerror(fault.number), path)
        self.calls.append((operation, path))

    def _take_space(self, length: int) -> int:
        if self.space_left is None:
            return length
        if self.space_left == 0 < length:
            raise _full_disk()
        fitting = min(length, self.space_left)
        self.space_left -= fitting
        return fitting


def _full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
