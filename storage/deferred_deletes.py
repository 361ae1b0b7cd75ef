"""Files and directories that are renamed already and may be removed after a while.

Owns the queue between "renamed to .deleted or -delete" and "gone". Readers that were handed a
slice before keep their descriptor anyway; the delay is Kafka's (file.delete.delay.ms) and gives
a person the chance to save the files.
"""

import logging
from heapq import heapify, heappop, heappush
from threading import Lock
from typing import NamedTuple

from storage.files import Files

logger = logging.getLogger(__name__)


class _Delete(NamedTuple):
    due_ms: int
    path: str
    is_directory: bool


class DeferredDeletes:
    """Paths with the time at which they are to be removed."""

    def __init__(self) -> None:
        self._due: list[_Delete] = []
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, path: str, due_ms: int) -> None:
        """Have a file removed."""
        with self._lock:
            heappush(self._due, _Delete(due_ms, path, False))

    def add_directory(self, path: str, due_ms: int) -> None:
        """Have a directory removed with all that it holds."""
        self.forget_below(path)
        with self._lock:
            heappush(self._due, _Delete(due_ms, path, True))

    def forget_below(self, directory: str) -> None:
        """Drop what lies in a directory that is removed as a whole or has gone offline."""
        prefix = f"{directory}/"
        with self._lock:
            self._due = [entry for entry in self._due if not entry.path.startswith(prefix)]
            heapify(self._due)

    def moved(self, source: str, target: str) -> None:
        """A directory was renamed; what waits in it is now found below the new name."""
        prefix = f"{source}/"
        with self._lock:
            self._due = [
                entry._replace(path=f"{target}/{entry.path.removeprefix(prefix)}")
                if entry.path.startswith(prefix)
                else entry
                for entry in self._due
            ]
            heapify(self._due)

    def run(self, files: Files, now_ms: int) -> int:
        """Remove what is due; returns how many were removed. May run in a thread.

        What cannot be removed is left to the next start, which looks for such names.
        """
        removed = 0
        while (due := self._take_due(now_ms)) is not None:
            try:
                if due.is_directory:
                    files.remove_tree(due.path)
                    removed += 1
                else:
                    removed += files.unlink(due.path)
            except OSError as error:
                logger.error("%s cannot be removed: %s", due.path, error)
        return removed

    def _take_due(self, now_ms: int) -> _Delete | None:
        with self._lock:
            if self._due and self._due[0].due_ms <= now_ms:
                return heappop(self._due)
        return None
