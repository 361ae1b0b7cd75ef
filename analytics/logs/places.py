"""Files and folders where logs may lie: local paths, and whatever PyArrow's file systems open.

Owns how a name is opened, listed and joined. A name with `scheme://` in it (hdfs, s3, gs) goes to
PyArrow; any other, and one that begins with `file:/`, is a local path, which is read by plain
system calls. Must not know
what the files hold.
"""

import errno
import os
from enum import Enum, auto
from functools import lru_cache
from stat import S_ISDIR, S_ISREG
from typing import Any, NamedTuple, Protocol

from analytics.logs import hdfs

_SCHEME = "://"
_LOCAL = "file:/"
_HADOOPS_SCHEMES = {"s3a": "s3", "s3n": "s3"}
NO_IDENTITY = 0
_LOOKS = 10


class Nature(Enum):
    """What stands behind a name."""

    FOLDER = auto()
    FILE = auto()
    NO_FILE = auto()  # a pipe, a device
    LEADS_NOWHERE = auto()  # a link to what is not there, or where we may not look


class Entry(NamedTuple):
    """One name in a folder."""

    name: str
    location: str
    nature: Nature
    size: int = 0
    identity: int = NO_IDENTITY


class NoRegularFileError(OSError):
    """A pipe, a device or a folder in the place of a file."""


class PlacedFile(Protocol):
    """A file open for reading at any position. Closes itself when the last reference goes."""

    size: int
    identity: int  # tells a file from one that took its name; NO_IDENTITY where nothing does

    def read(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only where the file ends."""

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer, and say how much of it; less than all only where the file ends."""


def is_local(location: str) -> bool:
    return _SCHEME not in location


def absolute(location: str) -> str:
    """A name that means the same in every process of this machine. Hadoop's users write file:/DIR
    for local paths."""
    if location.startswith(_LOCAL):
        location = "/" + location.removeprefix(_LOCAL).lstrip("/")
    return os.path.abspath(location) if is_local(location) else location.rstrip("/")


def join(location: str, name: str) -> str:
    """The name of something in a folder. What follows a `?` in a URI are options for all of it."""
    if is_local(location):
        return f"{location}/{name}"
    path, question_mark, options = location.partition("?")
    return f"{path.rstrip('/')}/{name}{question_mark}{options}"


def split(location: str) -> tuple[str, str]:
    """The folder that something lies in, and its name there."""
    path, question_mark, options = (
        (location, "", "") if is_local(location) else location.partition("?")
    )
    folder, _, name = path.rstrip("/").rpartition("/")
    return f"{folder}{question_mark}{options}", name


def list_folder(location: str) -> list[Entry]:
    """What is in a folder; what is renamed meanwhile may be missing. Raises OSError."""
    if is_local(location):
        return _list_local_folder(location)
    from pyarrow.fs import FileSelector, FileType

    file_system, path = _file_system(location)
    return [
        Entry(
            found.base_name,
            join(location, found.base_name),
            Nature.FOLDER if found.type == FileType.Directory else Nature.FILE,
            found.size or 0,
        )
        for found in file_system.get_file_info(FileSelector(path))
        if found.type in (FileType.File, FileType.Directory)
    ]


def _list_local_folder(location: str) -> list[Entry]:
    """Where something vanishes on the way, it may have another name by now: once more."""
    for _ in range(_LOOKS):
        with os.scandir(location) as scanned:
            names = list(scanned)
        entries = [found for name in names if (found := _local_entry(name)) is not None]
        if len(entries) == len(names):
            break
    return entries


def _local_entry(entry: os.DirEntry[str]) -> Entry | None:
    try:
        status = entry.stat()
    except OSError as error:
        if entry.is_symlink() and os.path.lexists(entry.path):
            return Entry(entry.name, entry.path, Nature.LEADS_NOWHERE)
        if isinstance(error, FileNotFoundError):
            return None
        raise
    nature = _nature(status.st_mode)
    size = status.st_size if nature is Nature.FILE else 0
    return Entry(entry.name, entry.path, nature, size, status.st_ino)


def _nature(mode: int) -> Nature:
    if S_ISDIR(mode):
        return Nature.FOLDER
    return Nature.FILE if S_ISREG(mode) else Nature.NO_FILE


def is_folder(location: str) -> bool | None:
    """Whether this is a folder; None if there is nothing of that name. Raises OSError."""
    if is_local(location):
        try:
            return S_ISDIR(os.stat(location).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None
    from pyarrow.fs import FileType

    file_system, path = _file_system(location)
    kind = file_system.get_file_info(path).type
    return None if kind == FileType.NotFound else bool(kind == FileType.Directory)


def open_file(location: str) -> PlacedFile:
    """Raises FileNotFoundError where there is none, NoRegularFileError, and other OSErrors."""
    if is_local(location):
        return _LocalFile(location)
    file_system, path = _file_system(location)
    return _ArrowFile(file_system.open_input_file(path))


def read_whole(location: str) -> bytes:
    """All bytes of a small file. Raises FileNotFoundError where there is none."""
    file = open_file(location)
    return file.read(file.size, 0)


class _LocalFile:
    __slots__ = ("_descriptor", "identity", "size")

    def __init__(self, path: str) -> None:
        # Opened without waiting: a pipe without a writer would hold the reader for ever.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self._descriptor)
        if not S_ISREG(status.st_mode):
            raise NoRegularFileError(errno.EINVAL, "Not a regular file", path)
        self.size = status.st_size
        self.identity = status.st_ino

    def read(self, length: int, position: int) -> bytes:
        data = os.pread(self._descriptor, length, position)
        while len(data) < length:
            more = os.pread(self._descriptor, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def read_into(self, target: memoryview, position: int) -> int:
        filled = 0
        while filled < len(target):
            count = os.preadv(self._descriptor, [target[filled:]], position + filled)
            if not count:
                break
            filled += count
        return filled

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


class _ArrowFile:
    __slots__ = ("_file", "identity", "size")

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size: int = file.size()
        self.identity = NO_IDENTITY

    def read(self, length: int, position: int) -> bytes:
        data: bytes = self._file.read_at(max(0, min(length, self.size - position)), position)
        return data

    def read_into(self, target: memoryview, position: int) -> int:
        data = self.read(len(target), position)
        target[: len(data)] = data
        return len(data)


def _file_system(location: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it."""
    path, _, options = location.partition("?")
    scheme, _, rest = path.partition(_SCHEME)
    authority, slash, _ = rest.partition("/")
    root = f"{_HADOOPS_SCHEMES.get(scheme, scheme)}{_SCHEME}{authority}{slash}"
    file_system, root_path = _connected(f"{root}?{options}" if options else root)
    return file_system, f"{root_path.rstrip('/')}/{rest[len(authority) + 1 :]}".rstrip("/") or "/"


@lru_cache(maxsize=32)
def _connected(root: str) -> tuple[Any, str]:
    if root.startswith(tuple(f"{scheme}{_SCHEME}" for scheme in hdfs.SCHEMES)):
        return hdfs.connect(root)
    from pyarrow.fs import FileSystem

    found: tuple[Any, str] = FileSystem.from_uri(root)
    return found
