"""Files that are renamed already and may be removed after a while.

Owns the queue between "renamed to .deleted" and "gone". Readers that were handed a slice before
keep their descriptor anyway; the delay is Kafka's (file.delete.delay.ms) and gives a person the
chance to save the files.
"""

from heapq import heappop, heappush
from threading import Lock

from storage.files import Files


class DeferredDeletes:
    """Paths with the time at which they are to be removed."""

    def __init__(self) -> None:
        self._due: list[tuple[int, str]] = []
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, path: str, due_ms: int) -> None:
        with self._lock:
            heappush(self._due, (due_ms, path))

    def forget_below(self, directory: str) -> None:
        """Drop what lies in a directory that is removed as a whole or has gone offline."""
        prefix = f"{directory}/"
        with self._lock:
            self._due = sorted(entry for entry in self._due if not entry[1].startswith(prefix))

    def moved(self, source: str, target: str) -> None:
        """A directory was renamed; what waits in it is now found below the new name."""
        prefix = f"{source}/"
        with self._lock:
            self._due = sorted(
                (due_ms, f"{target}/{path.removeprefix(prefix)}")
                if path.startswith(prefix)
                else (due_ms, path)
                for due_ms, path in self._due
            )

    def run(self, files: Files, now_ms: int) -> int:
        """Remove what is due; returns the number of files removed. May run in a thread."""
        removed = 0
        while (path := self._take_due(now_ms)) is not None:
            removed += files.unlink(path)
        return removed

    def _take_due(self, now_ms: int) -> str | None:
        with self._lock:
            if self._due and self._due[0][0] <= now_ms:
                return heappop(self._due)[1]
        return None
