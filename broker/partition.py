"""One partition as this broker holds it: its log, and who leads it.

It decides who may read and write what; the log below knows no leaders, the manager above no logs.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from broker.failures import ApiError
from broker.metadata_cache import NO_LEADER
from network.protocol import ErrorCode
from network.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from storage.leader_epochs import EpochEnd
from storage.log import AppendInfo, Log, LogRead, ReadIsolation, TimestampOffset

UNKNOWN_EPOCH = -1
ALL_IN_SYNC = -1
UNKNOWN_OFFSET = -1
HIGH_WATERMARK = -1
LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
DEBUGGING_REPLICA = -2
CONSUMER_REPLICA = -1


@dataclass(frozen=True, slots=True)
class Leadership:
    """What the controller last decided for a partition."""

    leader: int = NO_LEADER
    leader_epoch: int = UNKNOWN_EPOCH
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    partition_epoch: int = -1


class Partition:
    """A replica of a partition on this broker."""

    __slots__ = (
        "_broker_id",
        "epoch_start_offset",
        "follower_start_offsets",
        "future_log",
        "index",
        "is_leader",
        "leadership",
        "log",
        "topic",
    )

    def __init__(self, topic: str, index: int, broker_id: int, log: Log) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        # The copy of the log that is being made in another directory.
        self.future_log: Log | None = None
        # As their fetches tell; a follower that has not fetched yet has no entry.
        self.follower_start_offsets: dict[int, int] = {}
        self.leadership = Leadership()
        self.is_leader = False
        self.epoch_start_offset = 0
        self._broker_id = broker_id

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.index

    @property
    def is_uncommitted(self) -> bool:
        """Some of what was appended is not known to be on all in-sync replicas yet."""
        return self.log.high_watermark < self.log.end_offset

    def apply(self, state: LeaderAndIsrPartitionState) -> None:
        """Take a decision of the controller over; its leader epoch is newer than ours."""
        self.leadership = Leadership(
            state.leader,
            state.leader_epoch,
            tuple(state.isr),
            tuple(state.replicas),
            state.partition_epoch,
        )
        self.is_leader = state.leader == self._broker_id
        if self.is_leader:
            self.epoch_start_offset = self.log.end_offset
            self.log.assign_epoch_start(state.leader_epoch, self.epoch_start_offset)
            self.advance_high_watermark()

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose picture of the leadership is older or newer than ours."""
        if current_leader_epoch in (UNKNOWN_EPOCH, self.leadership.leader_epoch):
            return
        if current_leader_epoch < self.leadership.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def _check_in_sync(self) -> None:
        """acks=all promises min.insync.replicas copies; refuse before writing what cannot be."""
        if len(self.leadership.isr) < self.log.config.min_insync_replicas:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def append(self, records: memoryview, acks: int) -> AppendInfo:
        if acks == ALL_IN_SYNC:
            self._check_in_sync()
        info = self.log.append_as_leader(records, self.leadership.leader_epoch)
        self.advance_high_watermark()
        return info

    def advance_high_watermark(self) -> None:
        """Alone in the ISR, what is written is committed; followers will move it otherwise."""
        if self.leadership.isr == (self._broker_id,):
            self.log.update_high_watermark(self.log.end_offset)

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: ReadIsolation,
        *,
        minimum_one_batch: bool,
    ) -> LogRead:
        return self.log.read(offset, max_bytes, isolation, minimum_one_batch)

    def offset_for_timestamp(
        self, timestamp: int, *, replica_id: int, read_committed: bool
    ) -> TimestampOffset | None:
        """ListOffsets from version 1: an offset and a timestamp, or None where there is none."""
        last_fetchable = self._last_fetchable(replica_id, read_committed)
        lagging = replica_id == CONSUMER_REPLICA and (
            self.epoch_start_offset > self.log.high_watermark
        )
        if timestamp == LATEST_TIMESTAMP:
            if lagging:
                raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
            return TimestampOffset(-1, last_fetchable, self.leadership.leader_epoch)
        if timestamp == EARLIEST_TIMESTAMP:
            return self.log.earliest_offset()
        found = self.log.offset_for_timestamp(timestamp)
        if found is not None and found.offset < last_fetchable:
            return found
        if lagging:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return None

    def delete_records(self, before: int) -> int:
        """Hide the records before an offset, -1 being all that are committed; the offset."""
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if "delete" not in self.log.config.cleanup_policy:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        offset = self.log.high_watermark if before == HIGH_WATERMARK else before
        if offset < 0:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.advance_start_offset(offset)
        return offset

    def low_watermark(self, live_brokers: Container[int]) -> int:
        """The offset before which no replica on a live broker has records any more."""
        lowest = self.log.start_offset
        if self.future_log is not None:
            lowest = min(lowest, self.future_log.start_offset)
        for broker in self.leadership.replicas:
            if broker != self._broker_id and broker in live_brokers:
                lowest = min(lowest, self.follower_start_offsets.get(broker, UNKNOWN_OFFSET))
        return lowest

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """OffsetForLeaderEpoch: the last epoch up to the given one, and where it ends."""
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.log.end_offset_for_epoch(epoch)

    def offsets_before(self, timestamp: int, limit: int, *, replica_id: int) -> Sequence[int]:
        """ListOffsets version 0: where segments begin, newest first."""
        offsets = self.log.segment_offsets_before(timestamp, limit)
        high_watermark = self.log.high_watermark
        if replica_id == CONSUMER_REPLICA and any(one > high_watermark for one in offsets):
            return [high_watermark, *(one for one in offsets if one <= high_watermark)]
        return offsets

    def _last_fetchable(self, replica_id: int, read_committed: bool) -> int:
        if replica_id != CONSUMER_REPLICA:
            return self.log.end_offset
        return self.log.last_stable_offset if read_committed else self.log.high_watermark
