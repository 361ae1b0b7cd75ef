"""Files of a process that dies in the middle of a given system call.

Owns the counting of calls, and an end that costs no process: from one call on, which may be half
done by then, every call raises what nobody catches, so that nothing more reaches the disk.
"""

import os
from collections.abc import Callable
from random import Random

from storage.files import AnyPath, Buffer, Descriptor, Files


class Died(BaseException):
    """The end of a process; not an exception that anybody may handle."""


def die() -> None:
    """Have the process end, as far as its files are concerned."""
    raise Died


class DyingFiles(Files):
    """Real files until the end; calls that change nothing are not counted."""

    def __init__(self, last_call: int, random: Random, end: Callable[[], None] = die) -> None:
        self.counted = 0
        self._last_call = last_call
        self._random = random
        self._end = end

    def die_at(self, call: int) -> None:
        """Choose another last call."""
        self._last_call = call

    def open(self, path: AnyPath, flags: int) -> Descriptor:
        if flags & (os.O_CREAT | os.O_TRUNC):
            self._count(lambda: super(DyingFiles, self).open(path, flags))
        return super().open(path, flags)

    def pwrite(self, file: Descriptor, data: Buffer, position: int) -> int:
        part = memoryview(data)[: self._random.randrange(len(data) + 1)]
        self._count(lambda: super(DyingFiles, self).pwrite(file, part, position))
        return super().pwrite(file, data, position)

    def truncate(self, file: Descriptor, length: int) -> None:
        self._count(lambda: super(DyingFiles, self).truncate(file, length))
        super().truncate(file, length)

    def sync(self, file: Descriptor) -> None:
        """Only counted: the system outlives the process."""
        self._count(lambda: None)

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        self._count(lambda: super(DyingFiles, self).replace(source, target))
        super().replace(source, target)

    def unlink(self, path: AnyPath) -> bool:
        self._count(lambda: super(DyingFiles, self).unlink(path))
        return super().unlink(path)

    def _count(self, do: Callable[[], object]) -> None:
        self.counted += 1
        if self.counted == self._last_call and self._random.random() < 0.5:
            do()
        if self.counted >= self._last_call:
            self._end()
