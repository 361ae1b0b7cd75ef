"""A clock that tests move, and the timers of a loop that follows it."""

from collections.abc import Callable


class ManualTimer:
    """What the loop hands out for a callback."""

    def __init__(self, time: float, callback: Callable[[], None]) -> None:
        self.time = time
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualLoop:
    """Stands in for the loop where only its time and its timers are needed."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wakeups = 0
        self._timers: list[ManualTimer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self.now + delay_seconds, callback)
        self._timers.append(timer)
        return timer

    @property
    def armed(self) -> list[ManualTimer]:
        return [one for one in self._timers if one.callback is not None]

    def advance(self, seconds: float) -> None:
        """Let time pass, calling back whatever becomes due on the way, at its own time."""
        until = self.now + seconds
        while due := [one for one in self.armed if one.time <= until]:
            first = min(due, key=lambda one: one.time)
            self._timers.remove(first)
            self.now = max(self.now, first.time)
            callback, first.callback = first.callback, None
            assert callback is not None
            self.wakeups += 1
            callback()
        self._timers = self.armed
        self.now = until

    def stall(self, seconds: float) -> None:
        """Let time pass while the loop is busy with something else."""
        self.now += seconds
