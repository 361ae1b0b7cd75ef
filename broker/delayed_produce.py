"""A produce with acks=all that waits until all in-sync replicas have what it appended."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.partition import Partition
from broker.purgatory import DelayedOperation
from network.protocol import ErrorCode
from network.protocol.messages.produce import PartitionProduceResponse, ProduceResponse


@dataclass(slots=True)
class WaitingPartition:
    """An append that is not committed yet, with its part of the response."""

    partition: Partition
    required_offset: int
    response: PartitionProduceResponse

    @property
    def is_settled(self) -> bool:
        """Committed, or led elsewhere by now (then the client must ask there)."""
        if not self.partition.is_leader:
            self.response.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return True
        return self.partition.log.high_watermark >= self.required_offset


class DelayedProduce(DelayedOperation[ProduceResponse]):
    """Done when every partition is settled; what is not by then has timed out."""

    def __init__(self, response: ProduceResponse, waiting: Sequence[WaitingPartition]) -> None:
        self._response = response
        self._waiting = waiting

    def try_result(self) -> ProduceResponse | None:
        self._waiting = [one for one in self._waiting if not one.is_settled]
        return None if self._waiting else self._response

    def expired_result(self) -> ProduceResponse:
        for one in self._waiting:
            if not one.is_settled:
                one.response.error_code = ErrorCode.REQUEST_TIMED_OUT
        return self._response
