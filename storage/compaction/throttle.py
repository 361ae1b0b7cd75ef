"""Holds the reading and writing of a cleaning to a number of bytes per second.

Owns the arithmetic. Time and waiting are handed in, so that a test has its own and a worker can
be woken.
"""

import time
from collections.abc import Callable
from typing import Final

# The rate is looked at over periods of this length, as in Kafka.
_PERIOD_SECONDS: Final = 0.3


class Throttle:
    """Told of every transfer, it waits when they come too fast."""

    def __init__(
        self,
        bytes_per_second: float,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._wait = wait
        self._period_start = clock()
        self._bytes = 0

    def transferred(self, count: int) -> None:
        """Take note of bytes read or written, and wait if there were too many of them."""
        self._bytes += count
        elapsed = self._clock() - self._period_start
        if elapsed < _PERIOD_SECONDS:
            return
        ahead = self._bytes / self._bytes_per_second - elapsed
        if ahead > 0:
            self._wait(ahead)
        self._period_start = self._clock()
        self._bytes = 0
