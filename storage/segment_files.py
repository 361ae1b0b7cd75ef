"""Names of the files that make up a log.

Owns how base offsets, kinds and suffixes are spelled in file and directory names. Must not know
what the files hold.
"""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from storage.errors import MalformedDirectoryError
from storage.log_config import INT32_MAX, INT64_MAX

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

DELETE_DIRECTORY_SUFFIX: Final = "-delete"
FUTURE_DIRECTORY_SUFFIX: Final = "-future"

LOG_KIND: Final = "log"
INDEX_KINDS: Final = ("index", "timeindex", "txnindex")
SEGMENT_KINDS: Final = (LOG_KIND, *INDEX_KINDS)
SNAPSHOT_KIND: Final = "snapshot"

_MAX_NAME_LENGTH: Final = 255
_SEGMENT_FILE: Final = re.compile(r"(\d+)\.(\w+)(\.deleted|\.cleaned|\.swap)?")


class SegmentSizes(NamedTuple):
    """How long the files of a segment are."""

    log: int
    offset_index: int
    time_index: int
    txn_index: int


class FileName(NamedTuple):
    """A file name of a log, taken apart."""

    offset: int
    kind: str
    suffix: str


class DirectoryName(NamedTuple):
    """A partition's directory name, taken apart; the suffix is empty, -delete or -future."""

    topic: str
    partition: int
    suffix: str


def segment_path(directory: str, offset: int, kind: str, suffix: str = "") -> str:
    return f"{directory}/{offset:020d}.{kind}{suffix}"


def parse_file_name(name: str) -> FileName | None:
    """The parts of a segment or snapshot file's name; None if it is something else."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or int(match[1]) > INT64_MAX:
        return None
    return FileName(int(match[1]), match[2], match[3] or "")


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def future_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}.{uuid4().hex}{FUTURE_DIRECTORY_SUFFIX}"


def deleted_directory(topic: str, partition: int) -> str:
    """A name that says that the directory is waiting for its removal; long topics are cut."""
    tail = f"-{partition}.{uuid4().hex}{DELETE_DIRECTORY_SUFFIX}"
    return topic[: _MAX_NAME_LENGTH - len(tail)] + tail


def parse_directory_name(directory: Path) -> DirectoryName:
    """Topic and partition of a partition's directory."""
    name = directory.name
    suffix = ""
    for candidate in (DELETE_DIRECTORY_SUFFIX, FUTURE_DIRECTORY_SUFFIX):
        if name.endswith(candidate):
            name, dot, _ = name.rpartition(".")
            suffix = candidate if dot else ""
            break
    topic, dash, partition = name.rpartition("-")
    if not (topic and dash and is_text(topic) and _is_partition(partition)):
        raise MalformedDirectoryError(
            f"Directory {readable(str(directory))} is not named topic-partition; log directories"
            " must hold partitions' directories only: move it elsewhere and start again"
        )
    return DirectoryName(topic, int(partition), suffix)


def is_text(name: str) -> bool:
    """Whether a name of a file is UTF-8, as all that a broker makes are."""
    return readable(name) == name


def readable(name: str) -> str:
    """A name that can be shown: bytes that are no UTF-8 are spelled out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_partition(number: str) -> bool:
    return number.isascii() and number.isdigit() and int(number) <= INT32_MAX
