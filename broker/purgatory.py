"""Operations that wait: for bytes, for replicas, for metadata. They hold no worker.

An operation is watched under keys. Whoever changes something that an operation may wait for calls
`check(key)`; an operation that is then complete, or whose time is up, is done once, leaves every
list that it is in, and calls back in the same turn of the loop (a future would take one more).
Parking, completing and expiring are O(1) in the number of operations that wait.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from broker.timing_wheel import Timer, TimingWheel

Result = TypeVar("Result")


class DelayedOperation(ABC, Generic[Result]):
    """Something to be answered later; subclasses say when, and what in the end."""

    @abstractmethod
    def try_result(self) -> Result | None:
        """The result when the wait is over, None while it is not."""

    @abstractmethod
    def expired_result(self) -> Result:
        """The result when the time is up."""


class Purgatory(Generic[Result]):
    """Where delayed operations of one kind wait."""

    def __init__(self, timers: TimingWheel) -> None:
        self._timers = timers
        self._watched: dict[Hashable, dict[Parked[Result], None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def park(
        self,
        operation: DelayedOperation[Result],
        keys: Sequence[Hashable],
        timeout_seconds: float,
    ) -> "Parked[Result]":
        """Take in an operation that could not be completed yet."""
        parked = Parked(self, operation, keys)
        for key in keys:
            self._watched.setdefault(key, {})[parked] = None
        self._count += 1
        parked.timer = self._timers.schedule(timeout_seconds, parked.expire)
        return parked

    def check(self, key: Hashable) -> None:
        """Something under this key has changed: complete what can be completed now."""
        watched = self._watched.get(key)
        if watched:
            for parked in list(watched):
                parked.check()

    def forget(self, parked: "Parked[Result]") -> None:
        for key in parked.keys:
            watched = self._watched.get(key)
            if watched is not None:
                watched.pop(parked, None)
                if not watched:
                    del self._watched[key]
        self._count -= 1


class Parked(Generic[Result]):
    """One operation in the purgatory, until it is done or cancelled."""

    __slots__ = (
        "_callback",
        "_done",
        "_error",
        "_operation",
        "_purgatory",
        "_result",
        "keys",
        "timer",
    )

    def __init__(
        self,
        purgatory: Purgatory[Result],
        operation: DelayedOperation[Result],
        keys: Sequence[Hashable],
    ) -> None:
        self.keys = keys
        self.timer: Timer | None = None
        self._purgatory = purgatory
        self._operation = operation
        self._callback: Callable[[Parked[Result]], None] | None = None
        self._done = False
        self._result: Result | None = None
        self._error: Exception | None = None

    def when_done(self, callback: "Callable[[Parked[Result]], None]") -> None:
        """Call back once there is a result, at once if there is one; never after a cancel."""
        self._callback = callback
        if self._done:
            callback(self)

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        """Forget it: nobody waits for the result any more."""
        self._callback = None
        if not self._done:
            self._leave()

    def check(self) -> None:
        if not self._done:
            self._attempt(self._operation.try_result)

    def expire(self) -> None:
        if not self._done:
            self._attempt(self._operation.expired_result)

    def _attempt(self, source: Callable[[], Result | None]) -> None:
        try:
            self._result = source()
        except Exception as error:
            self._error = error
        if self._result is None and self._error is None:
            return
        self._leave()
        if self._callback is not None:
            self._callback(self)

    def _leave(self) -> None:
        self._done = True
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None  # it would call this one: a circle
        self._purgatory.forget(self)
