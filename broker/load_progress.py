"""Tells an operator how far the loading of logs has come, where it takes its time.

On a terminal a bar that vanishes when all is done; otherwise a line in the log now and then. Is
told of each log in the thread that loads them. Must not know how logs are loaded.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from storage.log_manager import LoadProgress

logger = logging.getLogger(__name__)

# Nobody needs to be told of what is over before it is read.
SECONDS_BETWEEN_LINES = 3.0
FEWEST_LOGS_FOR_A_BAR = 100

Report = Callable[[LoadProgress], None]


@contextmanager
def load_progress(terminal: TextIO = sys.stderr) -> Iterator[Report]:
    """What to tell of each log that was loaded."""
    if not terminal.isatty():
        yield LinesOfProgress()
        return
    bar = ProgressBar(terminal)
    try:
        yield bar
    finally:
        bar.close()


class LinesOfProgress:
    """A line in the log every few seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_line = clock()

    def __call__(self, progress: LoadProgress) -> None:
        now = self._clock()
        if now - self._last_line >= SECONDS_BETWEEN_LINES and progress.loaded < progress.total:
            self._last_line = now
            share = 100 * progress.loaded // progress.total
            logger.info("Loaded %d of %d logs (%d %%).", progress.loaded, progress.total, share)


class ProgressBar:
    """A bar on a terminal, unless there are but few logs."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._advance: Callable[[int], None] | None = None
        self._stop: Callable[[], None] | None = None

    def __call__(self, progress: LoadProgress) -> None:
        if progress.total < FEWEST_LOGS_FOR_A_BAR:
            return
        if self._advance is None:
            self._start(progress.total)
        if self._advance is not None:
            self._advance(progress.loaded)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()

    def _start(self, total: int) -> None:
        # Here, because most starts need no bar and should not pay for it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        bar = Progress(
            "Loading logs",
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(file=self._terminal),
            transient=True,
        )
        task = bar.add_task("", total=total)
        bar.start()
        self._advance = lambda loaded: bar.update(task, completed=loaded)
        self._stop = bar.stop
