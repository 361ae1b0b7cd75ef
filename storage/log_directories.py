"""The directories named by `log.dirs`, and which of them can still be used.

Owns which directory is live and which is offline. Must not know logs: what a failure means for
them is told to whoever asked to be told.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock

from storage.checkpoint import TopicPartition
from storage.errors import LogDirectoryError, MalformedDirectoryError, NoLogDirectoryLeftError
from storage.files import Files
from storage.log_directory import LogDirectory

logger = logging.getLogger(__name__)


class LogDirectories:
    """Live directories by path, in the order in which they are named."""

    def __init__(
        self, paths: Sequence[Path], files: Files, on_failure: Callable[[Path, OSError], None]
    ) -> None:
        """Open and lock every directory; those that cannot be used are offline from the start.

        `on_failure` is called once for each directory that fails later, in whatever thread.
        """
        if len({path.resolve() for path in paths}) < len(paths):
            names = ", ".join(map(str, paths))
            raise MalformedDirectoryError(f"A log directory is named twice: {names}")
        self._on_failure = on_failure
        self._lock = Lock()
        self._live: dict[Path, LogDirectory] = {}
        self.offline: set[Path] = set()
        problems = [self._open(LogDirectory(path.absolute(), files)) for path in paths]
        if not self._live:
            named = "; ".join(problem for problem in problems if problem)
            raise NoLogDirectoryLeftError(f"No log directory can be used: {named}")

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(list(self._live.values()))

    def __getitem__(self, path: Path) -> LogDirectory:
        try:
            return self._live[path]
        except KeyError:
            raise LogDirectoryError(path, "The directory is offline or unknown") from None

    def fail(self, path: Path, error: OSError) -> None:
        """Take a directory out of service; may be called from any thread, and more than once."""
        with self._lock:
            directory = self._live.pop(path, None)
            if directory is None:
                return
            self.offline.add(path)
        logger.error("Log directory %s goes offline: %s", path, error)
        self._on_failure(path, error)
        directory.unlock()

    def write_checkpoint(
        self, name: str, offsets: Mapping[Path, Mapping[TopicPartition, int]]
    ) -> None:
        """Write a checkpoint into each of these directories that is live."""
        for path, entries in offsets.items():
            directory = self._live.get(path)
            if directory is not None:
                try:
                    directory.write_checkpoint(name, entries)
                except OSError as error:
                    self.fail(path, error)

    def close(self) -> None:
        """Mark the stop of each live directory as clean, and unlock it."""
        for directory in self:
            try:
                directory.mark_clean_shutdown()
            except OSError as error:
                self.fail(directory.path, error)
            directory.unlock()

    def _open(self, directory: LogDirectory) -> str | None:
        """Take a directory into service, or say what keeps it out."""
        try:
            directory.open()
        except OSError as error:
            logger.error("Log directory %s cannot be used: %s", directory.path, error)
            self.offline.add(directory.path)
            return f"{directory.path}: {error.strerror}"
        self._live[directory.path] = directory
        return None
