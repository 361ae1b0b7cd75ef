"""Which leader epoch began at which offset (`leader-epoch-checkpoint`).

Owns the list of epochs of one log and its file. Followers and clients compare epochs to find out
where histories part. Must not know who leads.

The file is replaced at once on every change, so that a killed process loses nothing; it reaches
the disk with the next flush of the log, before the recovery point moves past it.
"""

import logging
import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from storage.checkpoint import LEADER_EPOCH_CHECKPOINT, read_epochs, write_epochs
from storage.errors import CorruptCheckpointError
from storage.files import Files

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1

logger = logging.getLogger(__name__)


class EpochEntry(NamedTuple):
    """An epoch and the offset of the first record written in it."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """Where an epoch ends: the largest known epoch at or below the wanted one, and its end."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """Epochs in growing order, each with its start offset."""

    __slots__ = ("_files", "_is_synced", "directory", "entries", "latest_epoch")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.directory = directory
        self._is_synced = True
        # Replaced, never changed in place: a flushing thread may be looking at it.
        self.entries: list[EpochEntry] = []
        self.latest_epoch = UNDEFINED_EPOCH

    @property
    def path(self) -> str:
        return f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}"

    def load(self) -> None:
        """Read the file; a broken one counts as empty, for recovery finds epochs in batches."""
        try:
            entries = read_epochs(self._files, self.path)
        except CorruptCheckpointError as error:
            logger.warning("%s: it is taken to be empty", error)
            entries = []
        self._keep(EpochEntry(*entry) for entry in entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that records of an epoch begin at an offset; contradicting entries give way."""
        entries = self.entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return
        if epoch < 0:
            raise ValueError(f"Leader epoch {epoch} cannot be assigned")
        kept = [e for e in entries if e.epoch < epoch and e.start_offset < start_offset]
        if len(kept) < len(entries) and entries[-1].start_offset != start_offset:
            logger.warning(
                "%s: epoch %d at offset %d contradicts %s, which are dropped",
                self.directory,
                epoch,
                start_offset,
                entries[len(kept) :],
            )
        self._replace([*kept, EpochEntry(epoch, start_offset)])

    def end_of(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where an epoch ends in this log; undefined if nothing is known about it."""
        if epoch == UNDEFINED_EPOCH or not self.entries:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        following = [entry for entry in self.entries if entry.epoch > epoch]
        if not following:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        preceding = self.entries[: -len(following)]
        # Of an epoch before the first known one only its end is known: it has been removed.
        found = preceding[-1].epoch if preceding else epoch
        return EpochEnd(found, following[0].start_offset)

    def epoch_at(self, offset: int) -> int:
        """The epoch in which an offset was written; undefined if before all entries."""
        found = UNDEFINED_EPOCH
        for entry in self.entries:
            if entry.start_offset > offset:
                break
            found = entry.epoch
        return found

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or after the end of the log."""
        if self.entries and self.entries[-1].start_offset >= end_offset:
            self._replace([entry for entry in self.entries if entry.start_offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that ended before the start of the log; the current one starts there."""
        preceding = [entry for entry in self.entries if entry.start_offset <= start_offset]
        if preceding and (len(preceding) > 1 or preceding[0].start_offset < start_offset):
            following = self.entries[len(preceding) :]
            self._replace([EpochEntry(preceding[-1].epoch, start_offset), *following])

    def clear(self) -> None:
        if self.entries:
            self._replace([])

    def sync(self) -> None:
        """Bring the file to the disk; may run in a thread."""
        if self._is_synced:
            return
        self._is_synced = True
        try:
            descriptor = self._files.open(self.path, os.O_RDONLY)
            self._files.sync(descriptor)
            self._files.sync_directory(self.directory)
        except OSError:
            self._is_synced = False
            raise

    def _replace(self, entries: Iterable[EpochEntry]) -> None:
        self._keep(entries)
        write_epochs(self._files, self.path, self.entries, durable=False)
        self._is_synced = False

    def _keep(self, entries: Iterable[EpochEntry]) -> None:
        self.entries = list(entries)
        self.latest_epoch = self.entries[-1].epoch if self.entries else UNDEFINED_EPOCH
