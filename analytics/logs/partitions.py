"""Finds the partitions and segment files below a directory, live or not.

Owns which files belong to a log. Reads names and sizes, and the one checkpoint that says where
logs begin, and takes whatever it meets: files that are none of ours are passed over.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from errno import ELOOP
from pathlib import Path

from analytics.errors import AnalysisError, NoLogsError
from analytics.logs import places
from analytics.logs.places import Entry, Nature
from storage.checkpoint import LOG_START_OFFSET_CHECKPOINT
from storage.errors import MalformedDirectoryError
from storage.log_config import INT64_MAX
from storage.segment_files import (
    LOG_KIND,
    SNAPSHOT_KIND,
    SWAP_SUFFIX,
    DirectoryName,
    FileName,
    parse_directory_name,
    parse_file_name,
)

_DEEPEST_LOG_DIR = 3
_MAY_HOLD = (Nature.FOLDER, Nature.LEADS_NOWHERE)
_NEVER_OURS = "lost+found"  # of a disk's own, at its top and closed to all
_HIDDEN = "."  # .snapshot, .Trash: no broker's
_LOOKS = 10


@dataclass(frozen=True, slots=True)
class Segment:
    """One `.log` file, and its size when it was found."""

    log_dir: str
    topic: str
    partition: int
    base_offset: int
    path: str
    size: int
    identity: int = places.NO_IDENTITY
    is_last: bool = True

    def index_path(self, kind: str) -> str:
        """The index of some kind that belongs to this file."""
        folder, name = places.split(self.path)
        return places.join(folder, name.replace(f".{LOG_KIND}", f".{kind}", 1))


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """A partition's directory with its segments in the order of their offsets."""

    log_dir: str
    topic: str
    partition: int
    segments: tuple[Segment, ...]
    directory: str = ""
    snapshot_offsets: tuple[int, ...] = ()
    log_start_offset: int = 0

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def start_offset(self) -> int:
        """The first offset that a consumer may read."""
        return max(self.log_start_offset, self.segments[0].base_offset)


def find_partitions(directory: Path | str) -> list[PartitionLog]:
    """The partitions of a log directory, or of those that lie below a directory, or the one
    whose own directory this is. Raises AnalysisError where there is none."""
    location = places.absolute(str(directory))
    try:
        is_folder = places.is_folder(location)
    except (OSError, ValueError) as error:  # ValueError: no file system of that scheme
        reason = getattr(error, "strerror", None) or error
        raise AnalysisError(f"{location}: cannot be read: {reason}") from error
    if is_folder is None:
        raise NoLogsError(f"{location}: there is no such directory; name a log directory")
    if not is_folder:
        raise AnalysisError(f"{location}: is not a directory; name a log directory")
    found = read_partition(location)
    partitions = [found] if found is not None else list(_below(location, _DEEPEST_LOG_DIR))
    if not partitions:
        raise NoLogsError(
            f"{location}: holds no logs; name a directory with partitions in it (see log.dirs)"
        )
    return sorted(_with_log_starts(partitions), key=_place_of)


def find_all(directories: Iterable[str], *, may_be_empty: bool = False) -> list[PartitionLog]:
    """The partitions of several directories; one that is named twice counts once. A directory
    without any is an error, unless it may get them later; one that cannot be read always is, lest
    a stream take its logs for new ones when it can."""
    found: dict[str, PartitionLog] = {}
    for name in directories:
        try:
            found.update((log.directory, log) for log in find_partitions(name))
        except NoLogsError:
            if not may_be_empty:
                raise
    return sorted(found.values(), key=_place_of)


def _place_of(log: PartitionLog) -> tuple[str, str, int]:
    return log.log_dir, log.topic, log.partition


def _below(location: str, levels: int) -> Iterator[PartitionLog]:
    for child in _subdirectories(location):
        partition = read_partition(child)
        if partition is not None:
            yield partition
        elif levels > 1 and not places.split(child)[1].startswith((_HIDDEN, _NEVER_OURS)):
            yield from _below(child, levels - 1)


def _subdirectories(location: str) -> list[str]:
    try:
        return [one.location for one in places.list_folder(location) if one.nature in _MAY_HOLD]
    except (FileNotFoundError, NotADirectoryError):
        return []  # gone meanwhile
    except OSError as error:
        if error.errno == ELOOP:  # a link that leads to itself
            return []
        raise AnalysisError(f"{location}: cannot be read: {error.strerror or error}") from error


def read_partition(location: str) -> PartitionLog | None:
    """The partition whose directory this is: named topic-partition, with a segment in it."""
    name = _partition_name(location)
    if name is None:
        return None
    try:
        entries = _steady_entries(location)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AnalysisError(f"{location}: cannot be read: {error.strerror or error}") from error
    log_dir = places.split(location)[0]
    segments = _segments(entries, log_dir, name)
    if not segments:
        return None
    parsed = (parse_file_name(entry.name) for entry in entries)
    snapshots = (file.offset for file in parsed if file and file.kind == SNAPSHOT_KIND)
    return PartitionLog(
        log_dir, name.topic, name.partition, segments, location, tuple(sorted(snapshots))
    )


def _steady_entries(location: str) -> list[Entry]:
    """What is in a partition's directory, with all of its segments up to one.

    A folder is not listed at one moment: of the files that come, go or are renamed meanwhile, any
    may be missing. But segments are added in their order, so all before one that was seen were
    there before the next look; and where two looks have the same of them, none was renamed.
    """
    entries = places.list_folder(location)
    if not places.is_local(location):  # where no broker writes
        return entries
    latest = _latest_among(entries)
    for _ in range(_LOOKS):
        before = entries
        entries = places.list_folder(location)
        found = _logs_among(entries, latest)
        if not found:  # all that were there are gone
            latest = _latest_among(entries)
        elif found == _logs_among(before, latest):
            break
    return [entry for entry in entries if _is_up_to(latest, entry)]


def _latest_among(entries: Sequence[Entry]) -> int:
    return max((file.offset for file in _logs_among(entries)), default=-1)


def _logs_among(entries: Sequence[Entry], latest: int = INT64_MAX) -> set[FileName]:
    files = (parse_file_name(entry.name) for entry in entries)
    return {
        file
        for file in files
        if file
        and file.kind == LOG_KIND
        and file.suffix in ("", SWAP_SUFFIX)
        and file.offset <= latest
    }


def _is_up_to(latest: int, entry: Entry) -> bool:
    file = parse_file_name(entry.name)
    return file is None or file.kind != LOG_KIND or file.offset <= latest


def _partition_name(location: str) -> DirectoryName | None:
    try:
        name = parse_directory_name(Path(places.split(location)[1]))
    except MalformedDirectoryError:
        return None
    return None if name.suffix else name


def _segments(entries: Sequence[Entry], log_dir: str, name: DirectoryName) -> tuple[Segment, ...]:
    logs: dict[int, Segment] = {}
    swaps: dict[int, Segment] = {}
    for entry in entries:
        file = parse_file_name(entry.name)
        if file is None or file.kind != LOG_KIND or entry.nature is not Nature.FILE:
            continue
        kept = logs if not file.suffix else swaps if file.suffix == SWAP_SUFFIX else None
        if kept is not None:
            kept[file.offset] = Segment(
                log_dir, name.topic, name.partition, file.offset, entry.location, entry.size,
                entry.identity,
            )  # fmt: skip
    for offset in swaps.keys() - logs.keys():
        _take_swap(swaps[offset], logs)
    ordered = [logs[offset] for offset in sorted(logs)]
    return tuple(
        segment if index == len(ordered) - 1 else replace(segment, is_last=False)
        for index, segment in enumerate(ordered)
    )


def _take_swap(swap: Segment, logs: dict[int, Segment]) -> None:
    """A cleaned segment whose turn has come: its name is about to lose the suffix, and segments
    that it replaces are about to go, as after a crash (storage/compaction/pending.py)."""
    from analytics.logs.lookup import next_offset_of

    end = next_offset_of(swap)
    for offset in [offset for offset in logs if swap.base_offset < offset < end]:
        del logs[offset]
    logs[swap.base_offset] = swap


def _with_log_starts(partitions: Iterable[PartitionLog]) -> Iterator[PartitionLog]:
    checkpoints: dict[str, dict[tuple[str, int], int]] = {}
    for log in partitions:
        if log.log_dir not in checkpoints:
            checkpoints[log.log_dir] = _log_starts(log.log_dir)
        start = checkpoints[log.log_dir].get((log.topic, log.partition), 0)
        yield replace(log, log_start_offset=start) if start else log


def _log_starts(log_dir: str) -> dict[tuple[str, int], int]:
    """The offsets below which records were deleted on request. A file that cannot be read says
    nothing: then more is read, not less."""
    try:
        lines = places.read_whole(places.join(log_dir, LOG_START_OFFSET_CHECKPOINT)).decode()
    except (OSError, UnicodeDecodeError):
        return {}
    starts = {}
    for line in lines.splitlines()[2:]:
        topic, _, numbers = line.partition(" ")
        partition, _, offset = numbers.partition(" ")
        if partition.isdigit() and offset.isdigit():
            starts[topic, int(partition)] = int(offset)
    return starts
