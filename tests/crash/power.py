"""A disk that forgets what was not synced when the power goes.

Owns the bookkeeping of what has reached the disk for sure: bytes of files that were synced, and
names in directories that were synced. Whatever else was done since may be there or not: changes
of names up to some point in their order, and bytes in whole, in part or as zeros. A directory is
there as soon as it was made, as all journaling file systems see to it before anything in it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Lock

from storage.files import AnyPath, Descriptor, Files

Names = dict[str, int]


class ForgetfulFiles(Files):
    """Real files, and a memory of what of them is on the disk."""

    def __init__(self, root: Path) -> None:
        """All that lies below a directory counts as being on the disk."""
        self._root = root
        self._lock = Lock()
        # Full path to inode, as the last sync of its directory left it.
        self._durable_names: Names = {}
        self._durable_bytes: dict[int, bytes] = {}
        # Changes of names that wait for a sync, in their order: the directory, and what to do.
        self._pending: list[tuple[str, Callable[[Names], object]]] = []
        # For reading, and so that no inode number is used twice.
        self._held: dict[int, Descriptor] = {}
        for path in root.rglob("*"):
            if path.is_file():
                inode = self._hold(path)
                self._durable_names[str(path)] = inode
                self._durable_bytes[inode] = self._content(inode)

    def open(self, path: AnyPath, flags: int) -> Descriptor:
        is_new = flags & os.O_CREAT and not os.path.exists(path)
        descriptor = super().open(path, flags)
        if is_new:
            inode = self._hold(path)
            self._change(path, lambda names: names.update({str(path): inode}))
        return descriptor

    def sync(self, file: Descriptor) -> None:
        inode = os.fstat(file.fileno()).st_ino
        with self._lock:
            if inode in self._held:
                self._durable_bytes[inode] = self._content(inode)
                return
            for directory, change in self._pending:
                if directory == file.path:
                    change(self._durable_names)
            self._pending = [entry for entry in self._pending if entry[0] != file.path]

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        super().replace(source, target)

        def rename(names: Names) -> None:
            if str(source) in names:
                names[str(target)] = names.pop(str(source))

        self._change(target, rename)

    def unlink(self, path: AnyPath) -> bool:
        was_there = super().unlink(path)
        if was_there:
            self._change(path, lambda names: names.pop(str(path), None))
        return was_there

    def lose_power(self, target: Path, random: Random) -> None:
        """Write to another directory what is found on the disk when the power is back."""
        names = dict(self._durable_names)
        for _, change in self._pending[: random.randrange(len(self._pending) + 1)]:
            change(names)
        for name, inode in names.items():
            path = target / Path(name).relative_to(self._root)
            path.parent.mkdir(parents=True, exist_ok=True)
            durable = self._durable_bytes.get(inode, b"")
            path.write_bytes(_some_of(durable, self._content(inode), random))

    def _hold(self, path: AnyPath) -> int:
        descriptor = Files.open(self, path, os.O_RDONLY)
        inode = os.fstat(descriptor.fileno()).st_ino
        self._held[inode] = descriptor
        return inode

    def _content(self, inode: int) -> bytes:
        descriptor = self._held[inode].fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def _change(self, path: AnyPath, change: Callable[[Names], object]) -> None:
        with self._lock:
            self._pending.append((os.path.dirname(path), change))


def _some_of(durable: bytes, current: bytes, random: Random) -> bytes:
    """What may be left of a file whose bytes were synced once and changed since."""
    kept = random.randrange(min(len(durable), len(current)), max(len(durable), len(current)) + 1)
    return random.choice(
        (
            durable,
            current,
            current[:kept],
            # The length got there, the bytes did not.
            current[:kept] + bytes(max(len(current) - kept, 0)),
        )
    )
