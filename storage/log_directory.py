"""One of the directories named by `log.dirs`: its lock, its checkpoints, its marks.

Owns the files that lie beside the partitions' directories. Must not know logs.
"""

import fcntl
import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from storage.checkpoint import TopicPartition, read_offsets, write_offsets
from storage.errors import CorruptCheckpointError, DirectoryLockedError
from storage.files import Descriptor, Files

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

logger = logging.getLogger(__name__)


class LogDirectory:
    """A directory that holds partitions' directories."""

    def __init__(self, path: Path, files: Files) -> None:
        self.path = path
        self._files = files
        self._lock: Descriptor | None = None
        # The partitions that each checkpoint speaks of.
        self._on_record: dict[str, Collection[TopicPartition]] = {}

    def open(self) -> None:
        """Create the directory if need be, see that it can be used, and lock it."""
        self._files.make_directory(self.path)
        descriptor = self._files.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT)
        try:
            # lockf is what Apache Kafka takes; it does not hold within one process, flock does.
            fcntl.lockf(descriptor.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(descriptor.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DirectoryLockedError(
                f"Log directory {self.path} is in use by another broker: stop that one, or give"
                " this one another log.dirs"
            ) from None
        self._lock = descriptor

    def unlock(self) -> None:
        self._lock = None

    @property
    def has_clean_shutdown(self) -> bool:
        return (self.path / CLEAN_SHUTDOWN_FILE).exists()

    def take_clean_shutdown(self) -> bool:
        """Whether the last stop was clean; the mark is removed, so that a crash counts as one."""
        return self._files.unlink(self.path / CLEAN_SHUTDOWN_FILE)

    def mark_clean_shutdown(self) -> None:
        self._files.write_whole(self.path / CLEAN_SHUTDOWN_FILE, b"", durable=True)
        self._files.sync_directory(self.path)

    def partition_directories(self) -> list[Path]:
        with self._files.scan(self.path) as entries:
            return [self.path / entry.name for entry in entries if entry.is_dir()]

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """A checkpoint's offsets; a broken one counts as empty, which costs time, never data."""
        try:
            offsets = read_offsets(self._files, self.path / name)
        except CorruptCheckpointError as error:
            logger.warning("%s: it is taken to be empty", error)
            return {}
        self._on_record[name] = offsets.keys()
        return offsets

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        write_offsets(self._files, self.path / name, offsets)
        self._on_record[name] = offsets.keys()

    def has_on_record(self, partition: TopicPartition) -> bool:
        """Whether a checkpoint speaks of a partition."""
        return any(partition in partitions for partitions in self._on_record.values())
