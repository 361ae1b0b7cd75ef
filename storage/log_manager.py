"""All logs of a broker, over several log directories.

Owns which partition lies where, loading at start, periodic work and the clean stop. Plain
synchronous code: the broker decides when and in which thread the periodic methods run
(`flush_due`, `checkpoint_*`, `close` and `load` wait for the disk). Must not know replication.
"""

import logging
import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from storage.checkpoint import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
)
from storage.environment import DEFAULT_PRODUCER_EXPIRATION_MS, Environment
from storage.errors import LogDirectoryError, NoLogDirectoryLeftError
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_directory import LogDirectory
from storage.open_files import OpenFiles
from storage.segment_files import parse_directory_name, partition_directory

logger = logging.getLogger(__name__)


class LoadProgress(NamedTuple):
    """How far `load` has come."""

    loaded: int
    total: int
    log: Log


class LogManager:
    """The logs of all partitions on this broker."""

    def __init__(
        self,
        directories: Sequence[Path],
        default_config: LogConfig,
        clock: Callable[[], int],
        files: Files | None = None,
        *,
        recovery_threads_per_directory: int = 1,
        open_files_limit: int | None = None,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
        on_directory_failure: Callable[[Path, OSError], None] | None = None,
    ) -> None:
        self.default_config = default_config
        self._environment = Environment(
            clock=clock,
            files=files or Files(),
            open_files=OpenFiles(open_files_limit or _half_of_the_descriptors()),
            producer_expiration_ms=producer_expiration_ms,
            on_failure=self._directory_failed,
        )
        self._recovery_threads = recovery_threads_per_directory
        self._on_directory_failure = on_directory_failure
        self._logs: dict[TopicPartition, Log] = {}
        self._offline: dict[TopicPartition, Path] = {}
        self._live: dict[Path, LogDirectory] = {}
        self.offline_directories: set[Path] = set()
        for path in directories:
            self._open_directory(LogDirectory(path.absolute(), self._environment.files))
        if not self._live:
            raise NoLogDirectoryLeftError(
                f"None of the log directories can be used: {', '.join(map(str, directories))}"
            )

    @property
    def live_directories(self) -> list[Path]:
        return list(self._live)

    # Loading

    def load(
        self,
        configs: Mapping[str, LogConfig] | None = None,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> None:
        """Open every log that is there, in parallel; `configs` are those of the topics."""
        plans = [
            (directory, self._plan_loads(directory, configs or {}))
            for directory in list(self._live.values())
        ]
        total = sum(len(plan) for _, plan in plans)
        loaded = 0
        with ThreadPoolExecutor(self._recovery_threads * max(len(plans), 1)) as pool:
            jobs = [(d, pool.submit(job)) for d, plan in plans for job in plan]
            for directory, job in jobs:
                try:
                    log = job.result()
                except LogDirectoryError:
                    continue
                except OSError as error:
                    self._directory_failed(directory.path, error)
                    continue
                loaded += 1
                self._logs[log.topic, log.partition] = log
                if progress is not None:
                    progress(LoadProgress(loaded, total, log))

    def _plan_loads(
        self, directory: LogDirectory, configs: Mapping[str, LogConfig]
    ) -> list[Callable[[], Log]]:
        try:
            clean = directory.take_clean_shutdown()
            recovery_points = directory.read_checkpoint(RECOVERY_POINT_CHECKPOINT)
            start_offsets = directory.read_checkpoint(LOG_START_OFFSET_CHECKPOINT)
            high_watermarks = directory.read_checkpoint(HIGH_WATERMARK_CHECKPOINT)
            paths = directory.partition_directories()
        except OSError as error:
            self._directory_failed(directory.path, error)
            return []

        def load(path: Path) -> Log:
            topic, partition, _ = parse_directory_name(path)
            key = (topic, partition)
            log = Log(
                self._environment,
                path,
                configs.get(topic, self.default_config),
                start_offset=start_offsets.get(key, 0),
                recovery_point=recovery_points.get(key, 0),
                clean=clean,
            )
            log.update_high_watermark(high_watermarks.get(key, 0))
            return log

        return [lambda path=path: load(path) for path in paths]  # type: ignore[misc]

    # Finding and creating

    def get(self, topic: str, partition: int) -> Log | None:
        """The log of a partition, None if there is none; an error if it lies offline."""
        log = self._logs.get((topic, partition))
        if log is None and (topic, partition) in self._offline:
            path = self._offline[topic, partition]
            raise LogDirectoryError(path, f"{topic}-{partition} lies in an offline directory")
        return log

    def get_or_create(
        self,
        topic: str,
        partition: int,
        config: LogConfig | None = None,
        *,
        is_new: bool = True,
    ) -> Log:
        """The log of a partition; a new one goes to the directory with the fewest logs.

        With a directory offline, a partition that is not new may lie there: it is not created.
        """
        log = self.get(topic, partition)
        if log is not None:
            return log
        if not is_new and self.offline_directories:
            path = next(iter(self.offline_directories))
            raise LogDirectoryError(path, f"{topic}-{partition} may lie in an offline directory")
        for directory in self._emptiest_first():
            path = directory.path / partition_directory(topic, partition)
            try:
                log = Log(self._environment, path, config or self.default_config, clean=True)
            except OSError as error:
                self._directory_failed(directory.path, error)
                continue
            self._logs[topic, partition] = log
            return log
        raise NoLogDirectoryLeftError(f"No log directory is left for {topic}-{partition}")

    def all_logs(self) -> list[Log]:
        return list(self._logs.values())

    def _emptiest_first(self) -> list[LogDirectory]:
        counts = dict.fromkeys(self._live, 0)
        for log in self._logs.values():
            counts[log.directory.parent] += 1
        return [self._live[path] for path in sorted(counts, key=counts.__getitem__)]

    # Periodic work

    def flush_due(self) -> None:
        """Flush the logs whose flush.ms has passed."""
        now = self._environment.clock()
        for log in self.all_logs():
            if now - log.last_flush_ms >= log.config.flush_ms:
                log.flush()

    def checkpoint_recovery_points(self) -> None:
        """Remember up to where each log is on the disk."""
        self._checkpoint(RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)

    def checkpoint_start_offsets(self) -> None:
        """Remember where logs start, if that is not where their first segment starts."""
        self._checkpoint(
            LOG_START_OFFSET_CHECKPOINT,
            lambda log: (
                log.start_offset if log.start_offset > log.segments.first.base_offset else None
            ),
        )

    def checkpoint_high_watermarks(self) -> None:
        """Remember the high watermarks."""
        self._checkpoint(HIGH_WATERMARK_CHECKPOINT, lambda log: log.high_watermark)

    def _checkpoint(self, name: str, offset_of: Callable[[Log], int | None]) -> None:
        for directory in list(self._live.values()):
            offsets = {
                (log.topic, log.partition): offset
                for log in self._logs_in(directory.path)
                if (offset := offset_of(log)) is not None
            }
            try:
                directory.write_checkpoint(name, offsets)
            except OSError as error:
                self._directory_failed(directory.path, error)

    def _logs_in(self, path: Path) -> list[Log]:
        return [log for log in self._logs.values() if log.directory.parent == path]

    # Stopping

    def close(self) -> None:
        """Flush and close all logs, write the checkpoints and mark the stop as clean."""
        unclean: set[Path] = set()

        def stop(log: Log) -> None:
            log.flush()
            log.close()

        with ThreadPoolExecutor(self._recovery_threads * max(len(self._live), 1)) as pool:
            jobs = [pool.submit(stop, log) for log in self.all_logs()]
            for job in jobs:
                try:
                    job.result()
                except LogDirectoryError as error:
                    unclean.add(error.directory)
        self.checkpoint_recovery_points()
        self.checkpoint_start_offsets()
        self.checkpoint_high_watermarks()
        self._finish(directory for path, directory in self._live.items() if path not in unclean)

    def _finish(self, directories: Iterable[LogDirectory]) -> None:
        for directory in directories:
            directory.mark_clean_shutdown()
            directory.unlock()

    # Failures

    def _open_directory(self, directory: LogDirectory) -> None:
        try:
            directory.open()
        except OSError as error:
            logger.error("Log directory %s cannot be used: %s", directory.path, error)
            self.offline_directories.add(directory.path)
        else:
            self._live[directory.path] = directory

    def _directory_failed(self, path: Path, error: OSError) -> None:
        """Take a directory and its partitions out of service."""
        directory = self._live.pop(path, None)
        if directory is None:
            return
        logger.error("Log directory %s goes offline: %s", path, error)
        self.offline_directories.add(path)
        for key, log in list(self._logs.items()):
            if log.directory.parent == path:
                del self._logs[key]
                self._offline[key] = path
                log.release_files()
        directory.unlock()
        if self._on_directory_failure is not None:
            self._on_directory_failure(path, error)


def _half_of_the_descriptors() -> int:
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft_limit // 2 if soft_limit != resource.RLIM_INFINITY else 100_000
