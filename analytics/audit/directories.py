"""The files of log directories: what is missing, what is damaged, what does not belong."""

import re
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from analytics.audit.faults import Fault, Kind
from analytics.audit.listing import listed, not_a_file
from analytics.audit.unread import partition_name
from analytics.logs import places
from analytics.logs.partitions import PartitionLog
from analytics.logs.places import Entry, Nature
from storage.checkpoint import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_epochs,
    read_offsets,
)
from storage.errors import CorruptCheckpointError, CorruptSnapshotError
from storage.files import AnyPath, Files
from storage.producer_snapshot import decode_snapshot
from storage.segment_files import (
    LOG_KIND,
    SEGMENT_KINDS,
    SNAPSHOT_KIND,
    parse_file_name,
)

OFFSET_CHECKPOINTS: Final = (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)

_KNOWN_IN_LOG_DIR: Final = {
    *OFFSET_CHECKPOINTS,
    ".kafka_cleanshutdown",
    ".lock",
    ".zookeeper-session",
    "meta.properties",
}
# Of later releases of Kafka; the last character of an id has two bits of it.
_PARTITION_METADATA: Final = "partition.metadata"
_METADATA: Final = re.compile(rb"version: 0\r?\ntopic_id: [\w-]{21}[AQgw](\r?\n)?", re.ASCII)
_KNOWN_IN_PARTITION: Final = (LEADER_EPOCH_CHECKPOINT, _PARTITION_METADATA)
_NEEDED_INDEXES: Final = ("index", "timeindex")
_BEING_WRITTEN: Final = ".tmp"

# What looks damaged may be in the middle of being written: so often it is looked at.
LOOKS: Final = 5
BETWEEN_LOOKS_SECONDS: Final = 0.02


class PlacedFiles(Files):
    """Whole files from wherever logs may lie."""

    def read_whole(self, path: AnyPath) -> bytes:
        return places.read_whole(str(path))


def log_directory_faults(log_dir: str, files: Files) -> Iterator[Fault]:
    """Checkpoints that cannot be read, and whatever a broker did not put there."""
    for entry in listed(log_dir):
        is_partition = partition_name(entry.name) is not None
        if is_partition and entry.nature in (Nature.FOLDER, Nature.LEADS_NOWHERE):
            continue  # told of with the partitions
        if entry.nature is Nature.FOLDER:
            yield _fault(log_dir, entry, Kind.FOREIGN_FILE, "is no partition's directory")
        elif entry.nature is not Nature.FILE:
            yield _fault(log_dir, entry, *not_a_file(entry))
        elif entry.name in OFFSET_CHECKPOINTS:
            try:
                read_offsets(files, entry.location)
            except (CorruptCheckpointError, OSError) as error:
                yield _fault(log_dir, entry, Kind.DAMAGED_FILE, _reason(error, entry))
        elif entry.name.removesuffix(_BEING_WRITTEN) not in _KNOWN_IN_LOG_DIR:
            yield _fault(log_dir, entry, Kind.FOREIGN_FILE, "is no file of a log directory")


def partition_directory_faults(log: PartitionLog, files: Files) -> Iterator[Fault]:
    """Indexes that are missing, files that are damaged, and files that are none of a log's."""
    offsets = {segment.base_offset for segment in log.segments}
    present: set[tuple[int, str]] = set()
    entries = listed(log.directory)
    names = {entry.name for entry in entries}
    for entry in entries:
        name = parse_file_name(entry.name)
        if entry.nature is not Nature.FILE:
            if name is not None:
                present.add((name.offset, name.kind))
            yield _of_partition(log, entry.location, *not_a_file(entry))
        elif entry.name.removesuffix(_BEING_WRITTEN) in _KNOWN_IN_PARTITION:
            yield from _known_file_faults(log, entry, files)
        elif name is None or name.kind not in (*SEGMENT_KINDS, SNAPSHOT_KIND):
            yield _of_partition(log, entry.location, Kind.FOREIGN_FILE, "is no file of a log")
        elif name.suffix:
            continue  # on its way out or in: of a broker that runs, or for its next start
        elif name.kind == SNAPSHOT_KIND:
            yield from _snapshot_faults(log, entry.location, files)
        elif name.offset not in offsets and _log_of(name.offset) not in names:
            yield _of_partition(log, entry.location, Kind.FOREIGN_FILE, "its segment is not there")
        else:
            present.add((name.offset, name.kind))
    files_there = {entry.name for entry in entries if entry.nature is Nature.FILE}
    yield from _missing_indexes(log, files_there, present)


def _missing_indexes(
    log: PartitionLog, files_there: set[str], present: set[tuple[int, str]]
) -> Iterator[Fault]:
    for segment in log.segments:
        if _log_of(segment.base_offset) not in files_there:
            continue  # gone meanwhile, or no file
        for kind in _NEEDED_INDEXES:
            if (segment.base_offset, kind) not in present:
                path = segment.index_path(kind)
                yield _of_partition(log, path, Kind.MISSING_FILE, "its segment has none")


def segments_out_of_reach(log: PartitionLog) -> list[int]:
    """The offsets of segments whose files are links that lead nowhere."""
    links = (entry for entry in listed(log.directory) if entry.nature is Nature.LEADS_NOWHERE)
    names = (parse_file_name(link.name) for link in links)
    return [name.offset for name in names if name and name.kind == LOG_KIND and not name.suffix]


def _log_of(offset: int) -> str:
    return f"{offset:020d}.{LOG_KIND}"


def _known_file_faults(log: PartitionLog, entry: Entry, files: Files) -> Iterator[Fault]:
    try:
        if entry.name == LEADER_EPOCH_CHECKPOINT:
            ordered_epochs(files, entry.location)
        elif entry.name == _PARTITION_METADATA:
            _check_metadata(files, entry.location)
    except (CorruptCheckpointError, OSError) as error:
        yield _of_partition(log, entry.location, Kind.DAMAGED_FILE, _reason(error, entry))


def _check_metadata(files: Files, path: str) -> None:
    """That it has the form that Kafka gives it. Raises CorruptCheckpointError."""
    try:
        text = files.read_whole(path)
    except FileNotFoundError:
        return  # gone meanwhile
    if _METADATA.fullmatch(text) is None:
        raise CorruptCheckpointError("It does not say version 0 and a topic's id")


def ordered_epochs(files: Files, path: str) -> list[tuple[int, int]]:
    """The entries of a leader epoch checkpoint. Raises CorruptCheckpointError also for entries
    that no broker writes: epochs and their offsets only grow."""
    epochs = read_epochs(files, path)
    for before, entry in pairwise([(-1, -1), *epochs]):
        if entry[0] <= before[0] or entry[1] <= before[1]:
            epoch, offset = entry
            raise CorruptCheckpointError(f"Epoch {epoch} at offset {offset} is out of order")
    return epochs


def _snapshot_faults(log: PartitionLog, path: str, files: Files) -> Iterator[Fault]:
    """A broker that runs may be in the middle of writing it: then it is looked at again."""
    for look in range(LOOKS):
        try:
            decode_snapshot(files.read_whole(path))
            return
        except FileNotFoundError:
            return
        except (CorruptSnapshotError, OSError) as error:
            reason = str(error)
        if look + 1 < LOOKS:
            time.sleep(BETWEEN_LOOKS_SECONDS)
    yield _of_partition(log, path, Kind.DAMAGED_FILE, reason)


def _reason(error: Exception, entry: Entry) -> str:
    """What is wrong, without the path that has a column of its own."""
    return str(error).replace(entry.location, "it")


def _fault(log_dir: str, entry: Entry, kind: Kind, detail: str) -> Fault:
    return Fault(log_dir, None, None, entry.location, None, None, kind.value, detail)


def _of_partition(log: PartitionLog, path: str, kind: Kind, detail: str) -> Fault:
    return Fault(log.log_dir, log.topic, log.partition, path, None, None, kind.value, detail)
