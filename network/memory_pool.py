"""The memory that requests may hold between their first byte and their handling.

As in Kafka, the pool is not strict: whoever finds some of it free may take what one read brings,
so it can be overdrawn by one request and one scratch buffer. A frame whose size is known is
charged whole, so that a connection in the middle of a frame can always finish it: were it charged
by what has arrived, many half-read frames could wait for each other.
"""

from collections import deque
from collections.abc import Callable


class MemoryPool:
    """`queued.max.request.bytes`, shared by the connections of the data plane."""

    __slots__ = ("_waiting", "available", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.available = size
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_exhausted(self) -> bool:
        return self.available <= 0

    def take(self, count: int) -> None:
        self.available -= count

    def give_back(self, count: int) -> None:
        self.available += count
        if self.available > 0 and self._waiting:
            waiting, self._waiting = self._waiting, deque()
            for resume in waiting:
                resume()

    def when_available(self, resume: Callable[[], None]) -> None:
        """Call back once there is memory again; those who wait are called in turn."""
        self._waiting.append(resume)
