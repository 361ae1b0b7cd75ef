"""Disks that fail at a given system call, and a writer that goes on where it can.

Owns which call fails and how, and a workload that notes what was acknowledged before, during and
after the failure. Must not know what a log should hold in the end.
"""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from storage.errors import LogDirectoryError, NoLogDirectoryLeftError
from storage.faulty_files import FaultyFiles
from storage.files import AnyPath, Buffer, Descriptor, Files
from storage.log_manager import LogManager
from tests.crash.appending import append_to
from tests.crash.journal import Acknowledged, Append, JournalContent
from tests.crash.killing import crash
from tests.crash.workload import (
    CONFIG,
    CONFIGS,
    NOW,
    PARTITIONS,
    Workload,
    config_of,
    log_directories,
)

BAD_DISK: Final = "/disk-1"
_BLOCK_BYTES: Final = 512
_APPENDS: Final = 60
_STEPS_PER_CHORE: Final = 8


@dataclass(frozen=True, slots=True)
class Failure:
    """What goes wrong with the first disk from a certain system call on."""

    call: int
    number: int = errno.EIO
    lasts: bool = True
    # A full disk takes some bytes more before it refuses.
    bytes_left: int | None = None


class FailingFiles(FaultyFiles):
    """Real files; on the bad disk, one system call or all from one on fail."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self._failure = failure
        self.counted = 0

    def open(self, path: AnyPath, flags: int) -> Descriptor:
        if self._failure.number == errno.ENOSPC and not flags & os.O_CREAT:
            return Files.open(self, path, flags)
        return super().open(path, flags)

    def pwrite(self, file: Descriptor, data: Buffer, position: int) -> int:
        if BAD_DISK not in file.path or self._is_in_place(file, position + len(data)):
            return Files.pwrite(self, file, data, position)
        return super().pwrite(file, data, position)

    def _is_in_place(self, file: Descriptor, end: int) -> bool:
        """A full disk takes what goes into blocks that a file has already."""
        if self._failure.number != errno.ENOSPC:
            return False
        stat = os.fstat(file.fileno())
        return end <= min(stat.st_size, stat.st_blocks * _BLOCK_BYTES)

    def truncate(self, file: Descriptor, length: int) -> None:
        """A full disk has space again when a file becomes shorter."""
        before = os.fstat(file.fileno()).st_blocks
        super().truncate(file, length)
        if self.space_left is not None and BAD_DISK in file.path:
            freed = before - os.fstat(file.fileno()).st_blocks
            self.space_left += max(freed, 0) * _BLOCK_BYTES

    def _meet(self, operation: str, path: str) -> None:
        if BAD_DISK not in path:
            return
        is_full_disk = self._failure.number == errno.ENOSPC
        if is_full_disk and operation in ("pread", "unlink", "sync", "truncate"):
            return  # these work on a full disk
        self.counted += 1
        if self.counted < self._failure.call:
            return
        if self._failure.bytes_left is not None:
            if self.space_left is None:
                self.space_left = self._failure.bytes_left
        elif self._failure.lasts or self.counted == self._failure.call:
            number = self._failure.number
            raise OSError(number, os.strerror(number), path)


@dataclass(slots=True)
class Course:
    """What happened to a writer on failing disks."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    unresolved: list[Append] = field(default_factory=list)
    is_offline: bool = False

    @property
    def journal(self) -> JournalContent:
        return JournalContent(self.acknowledged, self.unresolved)


def write_on(root: Path, files: FaultyFiles, *, stops: bool) -> Course:
    """Write to logs until the workload is done; refused appends are noted and left at that."""
    course = Course()
    try:
        logs = LogManager(log_directories(root), CONFIG, lambda: NOW, files)
    except NoLogDirectoryLeftError:
        return course
    try:
        logs.load(CONFIGS)
        _write(logs, course)
        if stops:
            logs.close()
    finally:
        course.is_offline = bool(logs.offline_directories)
        crash(logs)
    return course


def _write(logs: LogManager, course: Course) -> None:
    random = Random(3)
    workload = Workload(random)
    ends = [0] * len(PARTITIONS)
    for step in range(_APPENDS):
        append = workload.next_append(ends)
        topic, partition = PARTITIONS[append.place]
        try:
            log = logs.get_or_create(topic, partition, config_of(topic))
        except LogDirectoryError:
            assert logs.offline_directories
            continue
        course.unresolved.append(append)
        try:
            course.acknowledged.append(append_to(log, append, step // 20))
        except LogDirectoryError as error:
            _check_offline(logs, error)
            continue
        course.unresolved.pop()
        ends[append.place] = log.end_offset
        if step % _STEPS_PER_CHORE == 0:
            _do_chores(logs, random)


def _do_chores(logs: LogManager, random: Random) -> None:
    """What a broker does now and then; only rolling says so if it fails."""
    for log in logs.all_logs():
        try:
            log.roll()
        except LogDirectoryError as error:
            _check_offline(logs, error)
    random.choice(
        (
            logs.flush_due,
            logs.checkpoint_recovery_points,
            logs.checkpoint_high_watermarks,
            logs.checkpoint_start_offsets,
            logs.remove_deleted,
        )
    )()


def _check_offline(logs: LogManager, error: LogDirectoryError) -> None:
    assert error.directory in logs.offline_directories
