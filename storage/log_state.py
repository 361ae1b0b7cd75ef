"""What a log is made of, and the rules that hold between its offsets.

Owns segments, leader epochs, producers and the offsets of one log, its flush, and what happens
when its disk fails. Reading (log_reader.py) and writing (log.py) build on it.

    start offset <= last stable offset <= high watermark <= end offset
    recovery point <= end offset
"""

from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import NoReturn

from storage.environment import Environment
from storage.epoch_recovery import rebuild_epochs_if_lost
from storage.errors import LogDirectoryError
from storage.files import unless_disk_is_full
from storage.leader_epochs import LeaderEpochs
from storage.log_config import LogConfig
from storage.producer_recovery import rebuild_producers
from storage.records.layout import MAGIC_2
from storage.recovery import SegmentLoader
from storage.segment import Segment
from storage.segment_files import FUTURE_DIRECTORY_SUFFIX, parse_directory_name
from storage.segments import Segments
from storage.validation import RecordRules


class LogState:
    """Segments and offsets of one partition in one log directory."""

    def __init__(
        self,
        environment: Environment,
        directory: Path,
        config: LogConfig,
        *,
        start_offset: int = 0,
        recovery_point: int = 0,
        clean: bool = False,
    ) -> None:
        """Open the log in a directory, creating and repairing what is needed."""
        self.environment = environment
        self._clock = environment.clock
        self.directory = directory
        self.topic, self.partition, _ = parse_directory_name(directory)
        self.config = config
        self.rules = RecordRules.of(config, validate_records=environment.validate_records)
        # The log directory failed: whoever still holds this log must not use it any more.
        self.is_offline = False
        # Compaction has been over all before it; None if it never was here.
        self.cleaned_offset: int | None = None
        self._flush_lock = Lock()
        self._rename_lock = Lock()
        # How often the end was cut off: whoever read the log before must look again.
        self.truncations = 0
        self.last_flush_ms = self._clock()
        self._load(start_offset, recovery_point, clean=clean)
        self.high_watermark = self.start_offset
        self.release_files()

    def _load(self, start_offset: int, recovery_point: int, *, clean: bool) -> None:
        files = self.environment.files
        files.make_directory(self.directory)
        self.epochs = LeaderEpochs(files, str(self.directory))
        self.epochs.load()
        loader = SegmentLoader(
            self.environment,
            self.directory,
            self.config,
            start_offset,
            recovery_point,
            self.epochs,
        )
        loaded = loader.load(clean=clean)
        self.segments: Segments = loaded.segments
        self.end_offset = loaded.end_offset
        self.start_offset = max(start_offset, self.segments.first.base_offset)
        # All before this offset is on the disk for sure. What recovery found sound is not: it may
        # still be in memory only, if the process died but the machine went on.
        self.recovery_point = (
            self.end_offset
            if clean
            else max(min(recovery_point, self.end_offset), self.start_offset)
        )
        with unless_disk_is_full(f"The list of leader epochs of {self.name}"):
            if not clean:
                rebuild_epochs_if_lost(self.epochs, self.segments, self.start_offset)
            self._fit_epochs()
        self.producers = loaded.producers
        self._rebuild_producers(clean=clean)

    def _fit_epochs(self) -> None:
        """Epochs are known only of records that the log has and whose format can tell them."""
        if self.rules.magic < MAGIC_2:
            self.epochs.clear()
        self.epochs.truncate_from_end(self.end_offset)
        self.epochs.truncate_from_start(self.start_offset)

    def _rebuild_producers(self, *, clean: bool = False) -> None:
        rebuild_producers(
            self.producers,
            self.segments,
            self.start_offset,
            self.end_offset,
            self._clock(),
            magic=self.rules.magic,
            clean=clean,
        )

    # Facts

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def is_future(self) -> bool:
        """Whether this log is a copy that will replace the one in another log directory."""
        return self.directory.name.endswith(FUTURE_DIRECTORY_SUFFIX)

    @property
    def size_in_bytes(self) -> int:
        return self.segments.size_in_bytes

    @property
    def last_stable_offset(self) -> int:
        """All before it is decided: committed, aborted or written outside transactions."""
        unstable = self.producers.first_unstable_offset
        if unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.start_offset)

    @property
    def unflushed_records(self) -> int:
        return self.end_offset - self.recovery_point

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether a rolled segment still waits for its flush."""
        return self.recovery_point < self.segments.active.base_offset

    # Offsets

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, within the bounds of the log; returns what it is now."""
        high_watermark = min(max(offset, self.start_offset), self.end_offset)
        self.high_watermark = high_watermark
        self.producers.high_watermark_moved(high_watermark)
        return high_watermark

    def _set_end_offset(self, offset: int) -> None:
        """The log was cut: no other offset may lie past its end."""
        with self._flush_lock:
            self.truncations += 1
            self.end_offset = offset
            self.recovery_point = min(self.recovery_point, offset)
        if self.high_watermark > offset:
            self.update_high_watermark(offset)
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, self.segments.active.base_offset)

    def _set_start_offset(self, offset: int) -> None:
        self.start_offset = offset
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        with self._flush_lock:
            self.recovery_point = max(self.recovery_point, offset)

    # Files

    def flush(self, offset: int | None = None) -> None:
        """Bring all before `offset` (by default everything) to the disk.

        May run in a thread while the log is appended to, rolled, truncated or deleted.
        """
        self._check_online()
        with self._flush_lock:
            truncations = self.truncations
            target = self.end_offset if offset is None else offset
            if target <= self.recovery_point:
                return
            # A preallocated file is cut when it is rolled, perhaps after it was flushed.
            first = self.recovery_point - self.config.preallocate
            unflushed = self.segments.between(first, target)
        try:
            self._sync(unflushed)
        except OSError as error:
            self._fail(error)
        with self._flush_lock:
            # What was cut off meanwhile may have been written anew, and that is not flushed.
            if self.truncations == truncations and target > self.recovery_point:
                self.recovery_point = target
        self.last_flush_ms = self._clock()

    def _sync(self, segments: Iterable[Segment]) -> None:
        """Bring files to the disk whose directory may be renamed, or given up, meanwhile."""
        while True:
            directory = self.directory
            try:
                for segment in segments:
                    segment.sync()
                self.epochs.sync()
            except FileNotFoundError:
                with self._rename_lock:  # one that is under way first gives all files their paths
                    if self.segments.active.deleted:
                        return
                    if self.directory == directory:
                        raise
            else:
                return

    def release_files(self) -> None:
        """Let go of all descriptors; they are opened again when needed."""
        for segment in self.segments:
            segment.release_all()

    def go_offline(self) -> None:
        """Take the log out of service and close its files. May be called from any thread."""
        self.is_offline = True
        for segment in self.segments:
            segment.deleted = True
            segment.release_all()

    def _check_online(self) -> None:
        if self.is_offline:
            raise LogDirectoryError(self.directory.parent, f"{self.name} is offline")

    def _fail(self, error: OSError) -> NoReturn:
        directory = self.directory.parent
        self.environment.on_failure(directory, error)
        raise LogDirectoryError(directory, f"I/O error in {self.name}: {error}") from error
