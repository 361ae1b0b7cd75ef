"""The throttle of compaction, with a clock of the test's own."""

import math

import pytest

from storage.compaction.throttle import Throttle


class Waiting:
    """Time that passes when somebody waits, or works."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds


def transfer(throttle: Throttle, time: Waiting, parts: int, seconds_each: float) -> None:
    for _ in range(parts):
        time.seconds += seconds_each
        throttle.transferred(1000)


def test_fast_transfers_are_held_to_the_rate() -> None:
    time = Waiting()
    throttle = Throttle(10_000, lambda: time.seconds, time.wait)
    transfer(throttle, time, parts=1000, seconds_each=0.01)
    assert time.seconds == pytest.approx(1000 * 1000 / 10_000, rel=0.05)
    assert time.waits


def test_slow_transfers_do_not_wait() -> None:
    time = Waiting()
    throttle = Throttle(10_000, lambda: time.seconds, time.wait)
    transfer(throttle, time, parts=100, seconds_each=0.2)
    assert time.waits == []


def test_without_a_limit_nothing_waits() -> None:
    time = Waiting()
    throttle = Throttle(math.inf, lambda: time.seconds, time.wait)
    transfer(throttle, time, parts=1000, seconds_each=0.001)
    assert time.waits == []
