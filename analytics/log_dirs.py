"""Finds the partitions and segment files below a directory, live or not.

Owns which files belong to a log. Reads names and sizes only, and takes whatever it meets: files
that are none of ours are passed over, and what vanishes while it looks was never there.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analytics.errors import AnalysisError
from storage.errors import MalformedDirectoryError
from storage.segment_files import LOG_KIND, DirectoryName, parse_directory_name, parse_file_name

_DEEPEST_LOG_DIR = 3


@dataclass(frozen=True, slots=True)
class Segment:
    """One `.log` file, and its size when it was found."""

    log_dir: str
    topic: str
    partition: int
    base_offset: int
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """A partition's directory with its segments in the order of their offsets."""

    log_dir: str
    topic: str
    partition: int
    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)


def find_partitions(directory: Path) -> list[PartitionLog]:
    """The partitions of a log directory, or of those that lie below a directory, or the one
    whose own directory this is. Raises AnalysisError where there is none."""
    directory = directory.absolute()
    if not directory.exists():
        raise AnalysisError(f"{directory}: there is no such directory; name a log directory")
    if not directory.is_dir():
        raise AnalysisError(f"{directory}: is not a directory; name a log directory")
    found = _as_partition(directory)
    partitions = [found] if found is not None else list(_below(directory, _DEEPEST_LOG_DIR))
    if not partitions:
        raise AnalysisError(
            f"{directory}: holds no logs; name a directory with partitions in it (see log.dirs)"
        )
    return sorted(partitions, key=lambda log: (log.log_dir, log.topic, log.partition))


def _below(directory: Path, levels: int) -> Iterator[PartitionLog]:
    for child in _subdirectories(directory):
        partition = _as_partition(child)
        if partition is not None:
            yield partition
        elif levels > 1:
            yield from _below(child, levels - 1)


def _subdirectories(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:  # gone meanwhile, or closed to us: nothing of the broker's is
        return []


def _as_partition(directory: Path) -> PartitionLog | None:
    """The partition whose directory this is: named topic-partition, with a segment in it."""
    name = _partition_name(directory)
    if name is None:
        return None
    try:
        segments = sorted(_segments(directory, name), key=lambda segment: segment.base_offset)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AnalysisError(f"{directory}: cannot be read: {error.strerror}") from error
    if not segments:
        return None
    return PartitionLog(str(directory.parent), name.topic, name.partition, tuple(segments))


def _partition_name(directory: Path) -> DirectoryName | None:
    try:
        name = parse_directory_name(directory)
    except MalformedDirectoryError:
        return None
    return None if name.suffix else name


def _segments(directory: Path, name: DirectoryName) -> Iterator[Segment]:
    with os.scandir(directory) as entries:
        for entry in entries:
            file = parse_file_name(entry.name)
            if file is None or file.kind != LOG_KIND or file.suffix:
                continue
            try:
                if not entry.is_file():
                    continue
                size = entry.stat().st_size
            except FileNotFoundError:
                continue
            yield Segment(
                str(directory.parent), name.topic, name.partition, file.offset, entry.path, size
            )
