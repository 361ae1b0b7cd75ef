"""What lies in a folder, as it is: also links that lead nowhere, and what is neither file nor
folder.

Readers pass over what they cannot read; the audit tells of it. It opens regular files only: a pipe
would keep it waiting.
"""

import errno
import os
import stat
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from analytics.logs import places
from analytics.logs.places import PlacedFile

_LOOKS: Final = 10


class Nature(Enum):
    """What stands behind a name."""

    FOLDER = auto()
    FILE = auto()
    NO_FILE = auto()
    LEADS_NOWHERE = auto()


class Listed(NamedTuple):
    """One name in a folder."""

    name: str
    location: str
    nature: Nature

    @property
    def is_folder(self) -> bool:
        return self.nature is Nature.FOLDER


class NoRegularFileError(OSError):
    """A pipe, a device or a folder in the place of a file."""


def listed(folder: str) -> list[Listed]:
    """In the order of their names; nothing where the folder has gone meanwhile."""
    try:
        found = _listed_here(folder) if places.is_local(folder) else _listed_elsewhere(folder)
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda entry: entry.name)


def open_regular(location: str) -> PlacedFile:
    """Raises FileNotFoundError where there is none, NoRegularFileError, and other OSErrors."""
    if places.is_local(location) and not is_regular(location):
        raise NoRegularFileError(errno.EINVAL, "Not a regular file", location)
    return places.open_file(location)


def is_regular(path: str) -> bool:
    """Raises FileNotFoundError."""
    return stat.S_ISREG(os.stat(path).st_mode)


def target_of(link: Listed) -> str:
    """What a link that leads nowhere was to lead to."""
    try:
        return os.readlink(link.location)
    except OSError:
        return "nothing"


def _listed_elsewhere(folder: str) -> list[Listed]:
    return [
        Listed(entry.name, entry.location, Nature.FOLDER if entry.is_directory else Nature.FILE)
        for entry in places.list_folder(folder)
    ]


def _listed_here(folder: str) -> list[Listed]:
    """Where something vanishes on the way, it may have another name by now: once more."""
    for _ in range(_LOOKS):
        with os.scandir(folder) as scanned:
            names = list(scanned)
        found = list(_natures(names))
        if len(found) == len(names):
            break
    return found


def _natures(names: list[os.DirEntry[str]]) -> Iterator[Listed]:
    for entry in names:
        try:
            yield Listed(entry.name, entry.path, _nature(entry.stat().st_mode))
        except OSError as error:
            if entry.is_symlink() and os.path.lexists(entry.path):
                yield Listed(entry.name, entry.path, Nature.LEADS_NOWHERE)
            elif not isinstance(error, FileNotFoundError):
                raise


def _nature(mode: int) -> Nature:
    if stat.S_ISDIR(mode):
        return Nature.FOLDER
    return Nature.FILE if stat.S_ISREG(mode) else Nature.NO_FILE
