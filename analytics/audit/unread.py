"""Partitions that readers find nothing in, though there was something once."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from analytics.audit.faults import Fault, Kind
from analytics.audit.listing import listed, not_a_file
from analytics.logs.partitions import PartitionLog
from analytics.logs.places import Entry, Nature
from storage.errors import MalformedDirectoryError
from storage.segment_files import (
    INDEX_KINDS,
    LOG_KIND,
    DirectoryName,
    parse_directory_name,
    parse_file_name,
)


def partition_name(name: str) -> DirectoryName | None:
    """The parts of a partition's directory name; None if it is something else."""
    try:
        return parse_directory_name(Path(name))
    except MalformedDirectoryError:
        return None


def unread_partition_faults(
    log_dir: str, read: Sequence[PartitionLog], written_up_to: Mapping[tuple[str, int], int]
) -> Iterator[Fault]:
    """Partitions of a log directory whose segments are gone. Where some that have segments were
    not read, topics were chosen, and those of others are nobody's concern."""
    known = {(log.topic, log.partition) for log in read}
    topics = {log.topic for log in read}
    unread = [one for one in _partitions(log_dir) if (one.topic, one.partition) not in known]
    is_whole = not any(one.topic not in topics and one.has_segments for one in unread)
    for one in unread:
        if is_whole or one.topic in topics:
            yield from one.faults(written_up_to.get((one.topic, one.partition), 0))


class _Unread(NamedTuple):
    log_dir: str
    topic: str
    partition: int
    entry: Entry

    @property
    def has_segments(self) -> bool:
        return any(
            entry.nature is Nature.FILE
            and (name := parse_file_name(entry.name)) is not None
            and name.kind == LOG_KIND
            for entry in listed(self.entry.location)
        )

    def faults(self, written_up_to: int) -> Iterator[Fault]:
        if self.entry.nature is Nature.LEADS_NOWHERE:
            yield self._fault(self.entry, *not_a_file(self.entry))
            return
        entries = listed(self.entry.location)
        names = [(entry, parse_file_name(entry.name)) for entry in entries]
        logs = [entry for entry, name in names if name and name.kind == LOG_KIND]
        for log in logs:
            if log.nature is not Nature.FILE:
                yield self._fault(log, *not_a_file(log))
        has_indexes = any(
            name and name.kind in INDEX_KINDS and not name.suffix for _, name in names
        )
        if not logs and (has_indexes or written_up_to > 0):
            left = "it has indexes and no segment" if has_indexes else "it is empty"
            known = f", and the checkpoints know of records up to {written_up_to - 1}"
            yield self._fault(self.entry, Kind.LOST, left + (known if written_up_to > 0 else ""))

    def _fault(self, entry: Entry, kind: Kind, detail: str) -> Fault:
        place = (self.log_dir, self.topic, self.partition, entry.location)
        return Fault(*place, None, None, kind.value, detail)


def _partitions(log_dir: str) -> Iterator[_Unread]:
    """Those that are not on their way out or in."""
    for entry in listed(log_dir):
        name = partition_name(entry.name)
        is_place = entry.nature in (Nature.FOLDER, Nature.LEADS_NOWHERE)
        if name is not None and not name.suffix and is_place:
            yield _Unread(log_dir, name.topic, name.partition, entry)
