"""Opens all logs of several log directories, many at a time.

Owns the order at start: marks and checkpoints first, then the logs, in threads. Must not know
what becomes of the logs: the log manager keeps them.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from storage.checkpoint import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
)
from storage.environment import Environment
from storage.errors import LogDirectoryError
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_directory import LogDirectory
from storage.segment_files import DELETE_DIRECTORY_SUFFIX, parse_directory_name

logger = logging.getLogger(__name__)


class LoadProgress(NamedTuple):
    """How far loading has come."""

    loaded: int
    total: int
    log: Log


@dataclass(frozen=True, slots=True)
class _DirectoryContent:
    """What the files beside the logs say, and where the logs are."""

    directory: LogDirectory
    clean: bool
    recovery_points: dict[TopicPartition, int]
    start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    cleaned_offsets: dict[TopicPartition, int]
    paths: list[Path]


@dataclass(frozen=True, slots=True)
class LogLoader:
    """Loads the logs of all directories; a directory that fails is reported and left out."""

    environment: Environment
    default_config: LogConfig
    configs: Mapping[str, LogConfig]
    threads_per_directory: int
    on_directory_failure: Callable[[Path, OSError], None]

    def load(
        self,
        directories: list[LogDirectory],
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> list[Log]:
        """Open every log; logs of a directory that fails meanwhile are not among the result."""
        contents = [c for c in map(self._look_into, directories) if c is not None]
        total = sum(len(content.paths) for content in contents)
        logs: list[Log] = []
        failed: set[Path] = set()
        with ThreadPoolExecutor(max(self.threads_per_directory * len(contents), 1)) as pool:
            jobs: dict[Future[Log], Path] = {
                pool.submit(self._open, content, path): content.directory.path
                for content in contents
                for path in content.paths
            }
            try:
                for job in as_completed(jobs):
                    log = self._result(job, jobs[job])
                    if log is None:
                        failed.add(jobs[job])
                        continue
                    logs.append(log)
                    if progress is not None:
                        progress(LoadProgress(len(logs), total, log))
            finally:
                pool.shutdown(cancel_futures=True)
        return [log for log in logs if log.directory.parent not in failed]

    def _look_into(self, directory: LogDirectory) -> _DirectoryContent | None:
        try:
            clean = directory.take_clean_shutdown()
            paths = directory.partition_directories()
            content = _DirectoryContent(
                directory,
                clean,
                directory.read_checkpoint(RECOVERY_POINT_CHECKPOINT),
                directory.read_checkpoint(LOG_START_OFFSET_CHECKPOINT),
                directory.read_checkpoint(HIGH_WATERMARK_CHECKPOINT),
                directory.read_checkpoint(CLEANER_CHECKPOINT),
                [path for path in paths if not self._is_deleted(path)],
            )
        except OSError as error:
            self.on_directory_failure(directory.path, error)
            return None
        if not clean and content.paths:
            logger.warning("%s was not stopped cleanly: its logs are checked", directory.path)
        return content

    def _is_deleted(self, path: Path) -> bool:
        """Whether a directory waits for its removal; if so it goes back to the queue."""
        if parse_directory_name(path).suffix != DELETE_DIRECTORY_SUFFIX:
            return False
        due_ms = self.environment.clock() + self.default_config.file_delete_delay_ms
        self.environment.deferred_deletes.add_directory(str(path), due_ms)
        return True

    def _open(self, content: _DirectoryContent, path: Path) -> Log:
        topic, partition, _ = parse_directory_name(path)
        key = (topic, partition)
        log = Log(
            self.environment,
            path,
            self.configs.get(topic, self.default_config),
            start_offset=content.start_offsets.get(key, 0),
            recovery_point=content.recovery_points.get(key, 0),
            clean=content.clean,
        )
        log.update_high_watermark(content.high_watermarks.get(key, 0))
        if not log.is_future:
            log.cleaned_offset = content.cleaned_offsets.get(key)
        return log

    def _result(self, job: Future[Log], directory: Path) -> Log | None:
        try:
            return job.result()
        except LogDirectoryError:
            return None  # the log has reported the failure itself
        except OSError as error:
            self.on_directory_failure(directory, error)
            return None
