"""Answers to those who waited, sent once the group has done what it was doing.

A client may have its next request in the pipe, and an answer would let that in while the group is
between two states. And the answers to hundreds of members are sent in slices, so that nobody
else's request waits for all of them.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

SLICE_SECONDS: Final = 0.001

Result = TypeVar("Result")


class Outbox:
    """What is to be sent, in order."""

    def __init__(self, call_soon: Callable[[Callable[[], object]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: deque[Callable[[], None]] = deque()

    def send(self, reply: Callable[[Result], None], result: Result) -> None:
        if not self._waiting:
            self._call_soon(self._flush)
        self._waiting.append(lambda: reply(result))

    def _flush(self) -> None:
        end = time.perf_counter() + SLICE_SECONDS
        waiting = self._waiting
        while waiting:
            waiting[0]()
            waiting.popleft()  # only now: until it is empty, nobody else schedules a flush
            if waiting and time.perf_counter() >= end:
                self._call_soon(self._flush)
                return
