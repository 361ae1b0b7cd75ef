"""Answers that wait until what was written to ZooKeeper has come about, as the metadata tells."""

from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

from broker.purgatory import DelayedOperation, Parked, Purgatory
from network.protocol.schema import Response

Thing = TypeVar("Thing")
ResponseT = TypeVar("ResponseT", bound=Response)


class DelayedMetadata(DelayedOperation[ResponseT], Generic[Thing, ResponseT]):
    """Waits until each of some things (topics, partitions) has been seen as it should be.

    `answer` makes the response, given those that time has run out for.
    """

    def __init__(
        self,
        things: Iterable[Thing],
        is_settled: Callable[[Thing], bool],
        answer: Callable[[Collection[Thing]], ResponseT],
    ) -> None:
        self._waiting = list(things)
        self._is_settled = is_settled
        self._answer = answer

    def try_result(self) -> ResponseT | None:
        self._look()
        return None if self._waiting else self._answer(())

    def expired_result(self) -> ResponseT:
        self._look()
        return self._answer(self._waiting)

    def answer_in_time(
        self, purgatory: Purgatory[ResponseT], topics: Iterable[str], timeout_ms: int
    ) -> ResponseT | Parked[ResponseT]:
        """The answer if there is one now, else a place to wait for it under the topics' names."""
        response = self.try_result()
        if response is not None:
            return response
        return purgatory.park(self, list(topics), max(timeout_ms, 0) / 1000)

    def _look(self) -> None:
        self._waiting = [one for one in self._waiting if not self._is_settled(one)]
