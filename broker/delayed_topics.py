"""Answers that wait until what was written to ZooKeeper has come about: leaders, or deletions."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from broker.metadata_cache import MetadataCache
from broker.purgatory import DelayedOperation, Parked, Purgatory
from network.protocol.schema import Response

ResponseT = TypeVar("ResponseT", bound=Response)
# Makes the response, given the topics that time has run out for.
Answer = Callable[[Collection[str]], ResponseT]


class DelayedLeaders(DelayedOperation[ResponseT]):
    """Waits until every partition of some topics has a leader that this broker knows of."""

    def __init__(
        self,
        metadata: MetadataCache,
        partitions: Mapping[str, Collection[int]],
        answer: Answer[ResponseT],
    ) -> None:
        self._metadata = metadata
        self._partitions = partitions
        self._answer = answer

    def try_result(self) -> ResponseT | None:
        return None if self._leaderless() else self._answer(())

    def expired_result(self) -> ResponseT:
        return self._answer(self._leaderless())

    def _leaderless(self) -> list[str]:
        return [
            topic
            for topic, indexes in self._partitions.items()
            if not all(self._metadata.has_leader(topic, index) for index in indexes)
        ]


class DelayedDeletion(DelayedOperation[ResponseT]):
    """Waits until this broker knows no more of some topics."""

    def __init__(
        self, metadata: MetadataCache, topics: Collection[str], answer: Answer[ResponseT]
    ) -> None:
        self._metadata = metadata
        self._topics = topics
        self._answer = answer

    def try_result(self) -> ResponseT | None:
        return None if self._remaining() else self._answer(())

    def expired_result(self) -> ResponseT:
        return self._answer(self._remaining())

    def _remaining(self) -> list[str]:
        return [topic for topic in self._topics if topic in self._metadata]


def answer_in_time(
    purgatory: Purgatory[ResponseT],
    operation: DelayedOperation[ResponseT],
    topics: Collection[str],
    timeout_ms: int,
) -> ResponseT | Parked[ResponseT]:
    """The answer if there is one already, else a place to wait for it under the topics' names."""
    response = operation.try_result()
    if response is not None:
        return response
    return purgatory.park(operation, list(topics), timeout_ms / 1000)
