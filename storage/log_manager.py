"""All logs of a broker, over several log directories.

Owns which partition lies where, its moves between directories, deletion, periodic work and the
clean stop. Plain synchronous code for one thread: the broker decides when the periodic methods
run. Those that wait for the disk and may run in a thread meanwhile say so. Must not know
replication.
"""

import logging
import resource
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import RLock

from storage.checkpoint import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
)
from storage.environment import (
    DEFAULT_PRODUCER_EXPIRATION_MS,
    Environment,
    flush_at_once,
    flush_later,
)
from storage.errors import LogDirectoryError, MalformedDirectoryError
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_directories import LogDirectories
from storage.log_directory import LogDirectory
from storage.log_loading import LoadProgress, LogLoader
from storage.open_files import OpenFiles
from storage.retention import enforce_retention
from storage.segment_files import (
    deleted_directory,
    future_directory,
    parse_directory_name,
    partition_directory,
)

__all__ = ["LoadProgress", "LogManager"]

logger = logging.getLogger(__name__)


class LogManager:
    """The logs of all partitions on this broker."""

    def __init__(
        self,
        directories: Sequence[Path],
        default_config: LogConfig,
        clock: Callable[[], int],
        files: Files | None = None,
        *,
        threads_per_directory: int = 1,
        open_files_limit: int | None = None,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
        validate_records: bool = False,
        on_directory_failure: Callable[[Path, OSError], None] | None = None,
        on_flush_due: Callable[[Log], None] = flush_at_once,
        on_roll: Callable[[Log], None] = flush_later,
    ) -> None:
        """Lock the directories; `load` opens the logs.

        `on_directory_failure` is called once per directory that goes offline, in whatever thread
        met the error; with no `live_directories` left there is nothing to go on with.
        `on_flush_due` and `on_roll` are described in environment.py.
        """
        self.default_config = default_config
        self.environment = Environment(
            clock=clock,
            files=files or Files(),
            open_files=OpenFiles(open_files_limit or _descriptors_for_files()),
            producer_expiration_ms=producer_expiration_ms,
            validate_records=validate_records,
            on_failure=self._io_failed,
            on_flush_due=on_flush_due,
            on_roll=on_roll,
        )
        self._threads = threads_per_directory
        self._on_directory_failure = on_directory_failure
        self._logs: dict[TopicPartition, Log] = {}
        self._future_logs: dict[TopicPartition, Log] = {}
        self._preferred: dict[TopicPartition, Path] = {}
        # Partitions whose log lies in a directory that went offline.
        self._offline: dict[TopicPartition, Path] = {}
        # Checkpoints are written by threads and, after a truncation, by the loop: offsets that
        # were gathered before must not overwrite those that were gathered later.
        self._checkpoint_lock = RLock()
        self.directories = LogDirectories(
            directories, self.environment.files, self._directory_failed
        )

    def set_threads(self, per_directory: int) -> None:
        """How many threads load the logs of a directory, and flush them at the end."""
        self._threads = per_directory

    @property
    def was_stopped_cleanly(self) -> bool:
        """Whether all directories bear the mark of a clean stop; loading takes it away."""
        return all(directory.has_clean_shutdown for directory in self.directories)

    @property
    def live_directories(self) -> list[Path]:
        return [directory.path for directory in self.directories]

    @property
    def offline_directories(self) -> list[Path]:
        return sorted(self.directories.offline)

    def load(
        self,
        configs: Mapping[str, LogConfig] | None = None,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> None:
        """Open every log that is there, in parallel; `configs` are those of the topics."""
        loader = LogLoader(
            self.environment,
            self.default_config,
            configs or {},
            self._threads,
            self.directories.fail,
        )
        for log in loader.load(list(self.directories), progress):
            logs = self._future_logs if log.is_future else self._logs
            key = (log.topic, log.partition)
            logs[key] = self._only_one(logs[key], log) if key in logs else log

    def _only_one(self, one: Log, other: Log) -> Log:
        """A directory that failed while a partition was made in it leaves an empty log behind."""
        for log, kept in ((one, other), (other, one)):
            if log.end_offset == 0:
                logger.warning("%s is removed for %s: it is empty", log.directory, kept.directory)
                self._retire(log)
                return kept
        raise MalformedDirectoryError(
            f"{one.topic}-{one.partition} lies in both {one.directory} and {other.directory},"
            " perhaps because a directory failed while it was moved: remove one of the two,"
            " rather that of the directory that failed"
        )

    # Finding and creating

    def get(self, topic: str, partition: int) -> Log | None:
        """The log of a partition, None if there is none; an error if it lies offline."""
        log = self._logs.get((topic, partition))
        if log is None and (topic, partition) in self._offline:
            path = self._offline[topic, partition]
            raise LogDirectoryError(path, f"{topic}-{partition} lies in an offline directory")
        return log

    def get_future(self, topic: str, partition: int) -> Log | None:
        """The copy of a partition's log that is being made in another directory."""
        return self._future_logs.get((topic, partition))

    def all_logs(self) -> list[Log]:
        """All logs, copies in the making included."""
        return [*self._logs.values(), *self._future_logs.values()]

    def prefer_directory(self, topic: str, partition: int, path: Path) -> None:
        """Say where a partition's log is to be created, if it is not there already."""
        self._preferred[topic, partition] = self.directories[path].path

    def get_or_create(
        self,
        topic: str,
        partition: int,
        config: LogConfig | None = None,
        *,
        is_new: bool = True,
    ) -> Log:
        """The log of a partition; a new one goes to the preferred or the emptiest directory.

        With a directory offline, a partition that is not new may lie there: it is not created.
        """
        log = self.get(topic, partition)
        if log is not None:
            return log
        if not is_new:
            self._check_all_online(topic, partition)
        preferred = self._preferred.pop((topic, partition), None)
        directories = self._emptiest_first() if preferred is None else [self.directories[preferred]]
        path = Path(partition_directory(topic, partition))
        log = self._create(directories, path, config or self.default_config)
        self._logs[topic, partition] = log
        return log

    def _create(self, directories: list[LogDirectory], path: Path, config: LogConfig) -> Log:
        topic, partition, _ = parse_directory_name(path)
        for directory in directories:
            if directory.has_on_record((topic, partition)):
                # Of a log that was deleted: a crash must not find it in the new one's place.
                self._checkpoint_all({directory.path})
                if directory.path in self.directories.offline:
                    continue
            try:
                return Log(self.environment, directory.path / path, config, clean=True)
            except OSError as error:
                self.directories.fail(directory.path, error)
        raise LogDirectoryError(self.offline_directories[-1], f"{path} cannot be created")

    def _check_all_online(self, topic: str, partition: int) -> None:
        for path in self.offline_directories:
            raise LogDirectoryError(path, f"{topic}-{partition} may lie in an offline directory")

    def _emptiest_first(self) -> list[LogDirectory]:
        if len(self.directories) == 1:
            return list(self.directories)
        counts = Counter(log.directory.parent for log in self.all_logs())
        return sorted(self.directories, key=lambda directory: counts[directory.path])

    # Moving between directories

    def create_future(self, topic: str, partition: int, path: Path) -> Log:
        """Begin a copy of a partition's log in another directory; see log_moves.py."""
        current = self.get(topic, partition)
        if current is None or current.directory.parent == path:
            raise ValueError(f"{topic}-{partition} cannot be moved to {path}")
        log = self._future_logs.get((topic, partition))
        if log is None or log.directory.parent != path:
            if log is not None:
                self.delete_future(topic, partition)
            name = Path(future_directory(topic, partition))
            log = self._create([self.directories[path]], name, current.config)
            self._future_logs[topic, partition] = log
        return log

    def replace_with_future(self, topic: str, partition: int) -> Log:
        """Put the copy, which has caught up, in the place of the log; returns it."""
        current = self.get(topic, partition)
        future = self._future_logs.get((topic, partition))
        if current is None or future is None:
            raise ValueError(f"{topic}-{partition} is not being moved")
        future.rename_directory(partition_directory(topic, partition))
        future.update_high_watermark(current.high_watermark)
        future.cleaned_offset = current.cleaned_offset
        del self._future_logs[topic, partition]
        self._logs[topic, partition] = future
        self._retire(current)
        return future

    # Deleting and cutting

    def delete(self, topic: str, partition: int) -> None:
        """Take a partition's log away; its files go after file.delete.delay.ms."""
        log = self.get(topic, partition)
        if log is None:
            self._check_all_online(topic, partition)
            return
        del self._logs[topic, partition]
        self._retire(log)

    def delete_future(self, topic: str, partition: int) -> None:
        """Give up a copy in the making."""
        log = self._future_logs.pop((topic, partition), None)
        if log is not None:
            self._retire(log)

    def _retire(self, log: Log) -> None:
        log.rename_directory(deleted_directory(log.topic, log.partition))
        log.abandon()
        due_ms = self.environment.clock() + log.config.file_delete_delay_ms
        self.environment.deferred_deletes.add_directory(str(log.directory), due_ms)

    def truncate(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Cut logs, and put it on record before more is written that is neither on the disk nor
        compacted."""
        cut = {
            log.directory.parent
            for key, offset in offsets.items()
            if (log := self._logs.get(key)) is not None and log.truncate_to(offset)
        }
        self._checkpoint_cut(cut)

    def truncate_fully_and_start_at(self, topic: str, partition: int, offset: int) -> None:
        """Empty a log; see `truncate`."""
        log = self._logs[topic, partition]
        log.truncate_fully_and_start_at(offset)
        self._checkpoint_cut({log.directory.parent})

    # Periodic work

    def cleanup(self, skipped: Container[TopicPartition] = ()) -> int:
        """Remove segments by retention; returns their number. Logs being compacted are skipped."""
        removed = 0
        for log in self.all_logs():
            if (log.topic, log.partition) not in skipped:
                try:
                    removed += enforce_retention(log)
                except LogDirectoryError as error:
                    logger.error("%s", error)
        return removed

    def remove_expired_producers(self) -> None:
        """Forget producer ids that have not written for long."""
        for log in self.all_logs():
            log.remove_expired_producers()

    def flush_due(self) -> None:
        """Flush rolled segments, and logs whose flush.ms has passed. May run in a thread."""
        now = self.environment.clock()
        for log in self.all_logs():
            try:
                if now - log.last_flush_ms >= log.config.flush_ms:
                    log.flush()
                elif log.has_unflushed_segments:
                    log.flush(log.segments.active.base_offset)
            except LogDirectoryError as error:
                logger.error("%s", error)

    def remove_deleted(self) -> int:
        """Remove files whose time has come; returns their number. May run in a thread."""
        return self.environment.deferred_deletes.run(
            self.environment.files, self.environment.clock()
        )

    def checkpoint_recovery_points(self) -> None:
        """Remember up to where each log is on the disk. May run in a thread."""
        logs = self.all_logs()
        self._checkpoint(RECOVERY_POINT_CHECKPOINT, _recovery_point)
        for log in logs:
            try:
                if not log.is_offline:
                    log.remove_old_snapshots()
            except LogDirectoryError as error:
                logger.error("%s", error)

    def checkpoint_start_offsets(self) -> None:
        """Remember where logs start that start inside a segment. May run in a thread."""
        self._checkpoint(LOG_START_OFFSET_CHECKPOINT, _hidden_start)

    def checkpoint_high_watermarks(self) -> None:
        """Remember the high watermarks. May run in a thread."""
        self._checkpoint(HIGH_WATERMARK_CHECKPOINT, _high_watermark)

    def checkpoint_cleaned_offsets(self) -> None:
        """Remember up to where each log is compacted. May run in a thread."""
        self._checkpoint(CLEANER_CHECKPOINT, _cleaned_offset)

    def _checkpoint_cut(self, paths: Container[Path]) -> None:
        self._checkpoint(RECOVERY_POINT_CHECKPOINT, _recovery_point, paths)
        if any(log.cleaned_offset is not None for log in self.all_logs()):
            self._checkpoint(CLEANER_CHECKPOINT, _cleaned_offset, paths)

    def _checkpoint_all(self, paths: Container[Path]) -> None:
        self._checkpoint(RECOVERY_POINT_CHECKPOINT, _recovery_point, paths)
        self._checkpoint(LOG_START_OFFSET_CHECKPOINT, _hidden_start, paths)
        self._checkpoint(HIGH_WATERMARK_CHECKPOINT, _high_watermark, paths)
        self._checkpoint(CLEANER_CHECKPOINT, _cleaned_offset, paths)

    def _checkpoint(
        self,
        name: str,
        offset_of: Callable[[Log], int | None],
        only: Container[Path] | None = None,
    ) -> None:
        with self._checkpoint_lock:
            offsets: dict[Path, dict[TopicPartition, int]] = {
                path: {} for path in self.live_directories if only is None or path in only
            }
            for log in self.all_logs():
                entries = offsets.get(log.directory.parent)
                offset = offset_of(log)
                if entries is not None and offset is not None:
                    entries[log.topic, log.partition] = offset
            self.directories.write_checkpoint(name, offsets)

    # Stopping

    def close(self) -> None:
        """Flush and close all logs, write the checkpoints and mark the stop as clean."""
        with ThreadPoolExecutor(max(self._threads * len(self.directories), 1)) as pool:
            jobs = [pool.submit(_stop, log) for log in self.all_logs()]
        for job in jobs:
            try:
                job.result()
            except LogDirectoryError as error:
                logger.error("%s", error)
        self.checkpoint_recovery_points()
        self.checkpoint_start_offsets()
        self.checkpoint_high_watermarks()
        self.checkpoint_cleaned_offsets()
        self.directories.close()

    def unlock(self) -> None:
        """Let others have the directories, where nothing was loaded that `close` could close."""
        for directory in self.directories:
            directory.unlock()

    # Failures

    def _io_failed(self, path: Path, error: OSError) -> None:
        self.directories.fail(path, error)

    def _directory_failed(self, path: Path, error: OSError) -> None:
        """Take the partitions of a directory out of service; may be called from any thread."""
        for logs in (self._logs, self._future_logs):
            for key, log in list(logs.items()):
                if log.directory.parent == path:
                    del logs[key]
                    log.go_offline()
                    if logs is self._logs:
                        self._offline[key] = path
        self.environment.deferred_deletes.forget_below(str(path))
        if self._on_directory_failure is not None:
            self._on_directory_failure(path, error)


def _descriptors_for_files() -> int:
    """A third of what this process may have open: indexes may need two, and connections some."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 100_000 if soft_limit == resource.RLIM_INFINITY else soft_limit // 3


def _recovery_point(log: Log) -> int:
    return log.recovery_point


def _high_watermark(log: Log) -> int:
    return log.high_watermark


def _cleaned_offset(log: Log) -> int | None:
    return log.cleaned_offset


def _hidden_start(log: Log) -> int | None:
    return log.start_offset if log.start_offset > log.segments.first.base_offset else None


def _stop(log: Log) -> None:
    log.flush()
    log.close()
