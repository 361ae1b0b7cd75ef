"""An answer that is not known yet and waits for no timer of its own: somebody will resolve it.

What waits for a log, for replicas or for metadata belongs into the purgatory; this is for parts
that keep their own account of who waits, as a group does of its members.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Deferred(Generic[Result]):
    """One answer, given once; it reaches the waiting request in the same turn of the loop."""

    __slots__ = ("_callback", "_result")

    def __init__(self) -> None:
        self._callback: Callable[[Deferred[Result]], None] | None = None
        self._result: Result | None = None

    def resolve(self, result: Result) -> None:
        self._result = result
        if self._callback is not None:
            self._callback(self)

    def when_done(self, callback: "Callable[[Deferred[Result]], None]") -> None:
        """Call back once there is a result, at once if there is one; never after a cancel."""
        self._callback = callback
        if self._result is not None:
            callback(self)

    def result(self) -> Result:
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        """Nobody waits for the answer any more."""
        self._callback = None
