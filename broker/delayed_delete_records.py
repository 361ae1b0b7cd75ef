"""An answer to DeleteRecords that waits until no live replica has the records any more."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.metadata_cache import MetadataCache
from broker.partition import Partition
from broker.purgatory import DelayedOperation
from network.protocol import ErrorCode
from network.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
)


@dataclass(slots=True)
class WaitingDeletion:
    """A partition whose replicas have yet to follow, with its part of the response."""

    partition: Partition
    before: int
    result: DeleteRecordsPartitionResult

    def is_settled(self, metadata: MetadataCache) -> bool:
        """All have followed, or it is led elsewhere or not served any more."""
        if self.partition.log.is_offline:
            self.result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            return True
        if not self.partition.is_leader:
            self.result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return True
        reached = self.partition.low_watermark(metadata.brokers)
        if reached < self.before:
            return False
        self.result.low_watermark = reached
        return True


class DelayedDeleteRecords(DelayedOperation[DeleteRecordsResponse]):
    """Done when every partition is settled; what is not by then has timed out."""

    def __init__(
        self,
        metadata: MetadataCache,
        response: DeleteRecordsResponse,
        waiting: Sequence[WaitingDeletion],
    ) -> None:
        self._metadata = metadata
        self._response = response
        self._waiting = waiting

    def try_result(self) -> DeleteRecordsResponse | None:
        self._waiting = [one for one in self._waiting if not one.is_settled(self._metadata)]
        return None if self._waiting else self._response

    def expired_result(self) -> DeleteRecordsResponse:
        for one in self._waiting:
            if not one.is_settled(self._metadata):
                one.result.error_code = ErrorCode.REQUEST_TIMED_OUT
                one.result.low_watermark = one.partition.low_watermark(self._metadata.brokers)
        return self._response
