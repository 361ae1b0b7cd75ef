"""All partitions that this broker holds: looks them up, appends to them, reads from them.

It owns the purgatories of produces and fetches that wait, and wakes them when a log changes. It
knows nothing of requests: handlers hand it what to do and make the responses.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.failures import EXPECTED_FAILURES, ApiError, error_code
from broker.metadata_cache import MetadataCache
from broker.partition import DEBUGGING_REPLICA, UNKNOWN_EPOCH, Partition
from broker.purgatory import Purgatory
from broker.timing_wheel import TimingWheel
from network.protocol import ErrorCode
from network.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from storage.files import EMPTY_SLICE
from storage.log import AppendInfo, LogRead, ReadIsolation
from storage.log_config import LogConfig
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)

PartitionKey = tuple[str, int]


@dataclass(slots=True)
class FetchSpec:
    """One partition of a fetch."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int
    log_start_offset: int = -1


@dataclass(slots=True)
class FetchParameters:
    """What a fetch asks of all its partitions together."""

    replica_id: int
    min_bytes: int
    max_bytes: int
    isolation: ReadIsolation
    partitions: Sequence[FetchSpec]
    hard_max_bytes: bool = False


@dataclass(slots=True)
class PartitionRead:
    """What one partition gave to a fetch."""

    spec: FetchSpec
    error: ErrorCode = ErrorCode.NONE
    data: LogRead | None = None


class ReplicaManager:
    """The partitions of this broker."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        metadata: MetadataCache,
        topic_config: Callable[[str], LogConfig],
        timers: TimingWheel,
    ) -> None:
        self.controller_epoch = 0
        self.partitions: dict[PartitionKey, Partition] = {}
        self.delayed_fetches: Purgatory[Any] = Purgatory(timers)
        self.delayed_produces: Purgatory[Any] = Purgatory(timers)
        self.delayed_deletions: Purgatory[Any] = Purgatory(timers)
        self._broker_id = broker_id
        self._logs = logs
        self._metadata = metadata
        self._topic_config = topic_config
        self._on_leadership_changed: list[Callable[[Partition], None]] = []

    def on_leadership_changed(self, callback: Callable[[Partition], None]) -> None:
        """Be called with each partition that this broker begins or ceases to lead."""
        self._on_leadership_changed.append(callback)

    def leader(self, topic: str, partition: int) -> Partition:
        """The partition, if it is led here; otherwise the error that tells a client where to go."""
        found = self.partitions.get((topic, partition))
        if found is not None and found.is_leader:
            return found
        if found is not None and found.log.is_offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        if found is None and not self._metadata.has_partition(topic, partition):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def readable(self, topic: str, partition: int, replica_id: int) -> Partition:
        """The partition for a read; debugging tools may also read from a follower."""
        if replica_id != DEBUGGING_REPLICA:
            return self.leader(topic, partition)
        found = self.partitions.get((topic, partition))
        if found is not None:
            return found
        if self._metadata.has_partition(topic, partition):
            raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE)
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def knows_of(self, topic: str, partition: int) -> bool:
        """Whether there is such a partition, here or elsewhere."""
        return self._metadata.has_partition(topic, partition)

    def held(self, topic: str, partition: int) -> Partition:
        """The partition, if this broker has it, be it as leader or not."""
        found = self.partitions.get((topic, partition))
        if found is None:
            known = self.knows_of(topic, partition)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER if known else unknown)
        if found.log.is_offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        return found

    def append(self, topic: str, partition: int, records: memoryview, acks: int) -> AppendInfo:
        """Append as leader, and wake the fetches that wait for this partition."""
        key = (topic, partition)
        led = self.partitions.get(key)
        if led is None or not led.is_leader:
            led = self.leader(topic, partition)
        info = led.append(records, acks)
        self.delayed_fetches.check(key)
        return info

    def read(
        self, fetch: FetchParameters, specs: Sequence[FetchSpec] | None = None
    ) -> list[PartitionRead]:
        """Read every partition, in order, within the limits; errors go with their partition.

        `specs` names those to be read, where it is not all of them.
        """
        results: list[PartitionRead] = []
        remaining = fetch.max_bytes
        minimum_one_batch = not fetch.hard_max_bytes
        for spec in fetch.partitions if specs is None else specs:
            result = self._read_one(fetch, spec, remaining, minimum_one_batch)
            results.append(result)
            if result.data is not None and len(result.data.slice):
                minimum_one_batch = False
                remaining = max(0, remaining - len(result.data.slice))
        return results

    def stop(self, topic: str, partition: int, *, delete: bool) -> ErrorCode:
        """Serve a partition no longer; with `delete`, its log goes as well."""
        stopped = self.partitions.get((topic, partition))
        if stopped is not None and stopped.is_leader:
            stopped.is_leader = False
            self._tell_leadership(stopped)
        try:
            if delete:
                self.partitions.pop((topic, partition), None)
                self._logs.delete_future(topic, partition)
                self._logs.delete(topic, partition)
        except EXPECTED_FAILURES as error:
            logger.error("Cannot delete %s-%d: %s", topic, partition, error)
            return error_code(error)
        finally:
            self._wake_all((topic, partition))
        return ErrorCode.NONE

    def log_directory_failed(self) -> None:
        """Let go of whoever waits for partitions that can't be served any more."""
        for key, partition in self.partitions.items():
            if partition.log.is_offline:
                self._wake_all(key)

    def _wake_all(self, key: PartitionKey) -> None:
        """A partition is led here no longer: who waits for it had better ask elsewhere."""
        for waiting in (self.delayed_fetches, self.delayed_produces, self.delayed_deletions):
            waiting.check(key)

    def _read_one(
        self, fetch: FetchParameters, spec: FetchSpec, remaining: int, minimum_one_batch: bool
    ) -> PartitionRead:
        try:
            partition = self.readable(spec.topic, spec.partition, fetch.replica_id)
            partition.check_leader_epoch(spec.current_leader_epoch)
            data = partition.read(
                spec.offset,
                min(spec.max_bytes, remaining),
                fetch.isolation,
                minimum_one_batch=minimum_one_batch,
            )
        except EXPECTED_FAILURES as error:
            return PartitionRead(spec, error_code(error))
        if not data.first_batch_whole and not fetch.hard_max_bytes:
            data = data._replace(slice=EMPTY_SLICE)
        return PartitionRead(spec, data=data)

    def become_leader_or_follower(self, topic: str, state: LeaderAndIsrPartitionState) -> ErrorCode:
        """Carry out a decision of the controller on one partition."""
        key = (topic, state.partition_index)
        partition = self.partitions.get(key)
        if partition is not None and partition.log.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR  # of whatever epoch: the controller asks for this
        known_epoch = UNKNOWN_EPOCH if partition is None else partition.leadership.leader_epoch
        if state.leader_epoch <= known_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if self._broker_id not in state.replicas:
            logger.warning("Not a replica of %s-%d, the decision on it is ignored", *key)
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            if partition is None:
                partition = self._create(topic, state)
            was_leader = partition.is_leader
            partition.apply(state)
        except EXPECTED_FAILURES as error:
            logger.error("Cannot take over %s-%d: %s", *key, error)
            return error_code(error)
        self.partitions[key] = partition
        if not partition.is_leader:
            self._wake_all(key)
        if partition.is_leader != was_leader:
            self._tell_leadership(partition)
        return ErrorCode.NONE

    def _tell_leadership(self, partition: Partition) -> None:
        for callback in self._on_leadership_changed:
            callback(partition)

    def _create(self, topic: str, state: LeaderAndIsrPartitionState) -> Partition:
        log = self._logs.get_or_create(
            topic, state.partition_index, self._topic_config(topic), is_new=state.is_new
        )
        partition = Partition(topic, state.partition_index, self._broker_id, log)
        partition.future_log = self._logs.get_future(*partition.key)
        return partition
