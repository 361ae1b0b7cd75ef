"""Groups and offsets on their way into `__consumer_offsets`.

Owns the batches that are appended, what their failures mean to the clients of a group, and the
wait for the commit. Must not know members' requests or timers.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.delayed_produce import DelayedProduce, WaitingPartition
from broker.failures import EXPECTED_FAILURES, error_code
from broker.groups.group import Group
from broker.groups.offsets import Commits, TopicPartition
from broker.groups.record_formats import (
    NO_TIMESTAMP,
    GroupKey,
    GroupMember,
    GroupValue,
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from broker.log_flusher import LogFlusher
from broker.partition import Partition
from broker.replica_manager import ReplicaManager
from broker.topic_names import GROUP_METADATA_TOPIC
from network.protocol import ErrorCode
from network.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from storage.records import BatchBuilder, Codec

logger = logging.getLogger(__name__)

ALL_IN_SYNC: Final = -1
NO_ACKS: Final = 0
NO_OFFSET: Final = -1

KeyAndValue = tuple[bytes, bytes | None]
Appended = Callable[[ErrorCode, int], None]
"""Told how an append ended, and at which offset its batch begins."""

_APPEND_FAILURES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_OFFSET_FAILURES: Final = _APPEND_FAILURES | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
_GROUP_FAILURES: Final = _APPEND_FAILURES | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How `__consumer_offsets` is written."""

    codec: Codec
    required_acks: int
    timeout_ms: int
    group_value_version: int
    offset_value_version: int | None


class GroupStore:
    """Appends what is to be remembered of groups."""

    def __init__(
        self,
        replicas: ReplicaManager,
        flusher: LogFlusher,
        settings: StoreSettings,
        partition_for: Callable[[str], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._flusher = flusher
        self._settings = settings
        self._partition_for = partition_for
        self._now_ms = now_ms

    def store_group(
        self,
        group: Group,
        assignment: Mapping[str, bytes],
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Write a generation with its assignment."""
        value = encode_group_value(
            group_value(group, assignment), self._settings.group_value_version
        )

        def appended(error: ErrorCode, _offset: int) -> None:
            if error != ErrorCode.NONE:
                logger.error(
                    "Cannot write generation %d of group %s: %s",
                    group.generation,
                    group.group_id,
                    error.name,
                )
            done(_GROUP_FAILURES.get(error, error))

        self._append(group, [(_group_key(group), value)], appended)

    def store_offsets(self, group: Group, commits: Commits, done: Appended) -> None:
        """Write offsets; they are committed when `done` is told of no error, not before."""
        version = self._settings.offset_value_version
        records: list[KeyAndValue] = [
            (
                _offset_key(group, partition),
                encode_offset_value(
                    OffsetValue(
                        offset=commit.offset,
                        leader_epoch=commit.leader_epoch,
                        metadata=commit.metadata,
                        commit_timestamp=commit.commit_timestamp,
                        expire_timestamp=commit.expire_timestamp,
                    ),
                    version if commit.expire_timestamp == NO_TIMESTAMP else None,
                ),
            )
            for partition, commit in commits.items()
        ]

        def appended(error: ErrorCode, offset: int) -> None:
            done(_OFFSET_FAILURES.get(error, error), offset)

        self._append(group, records, appended)

    def remove(
        self, group: Group, partitions: Sequence[TopicPartition], *, whole: bool
    ) -> ErrorCode:
        """Write tombstones for offsets, and for the `whole` group.

        Nobody waits for the replicas: what is lost is removed again the next time.
        """
        records: list[KeyAndValue] = [(_offset_key(group, one), None) for one in partitions]
        if whole:
            records.append((_group_key(group), None))
        if not records:
            return ErrorCode.NONE
        outcome = [ErrorCode.NONE]

        def appended(error: ErrorCode, _offset: int) -> None:
            outcome[0] = _OFFSET_FAILURES.get(error, error)

        self._append(group, records, appended, NO_ACKS)
        if outcome[0] != ErrorCode.NONE:
            logger.error(
                "Cannot write tombstones for group %s: %s", group.group_id, outcome[0].name
            )
        return outcome[0]

    def _append(
        self,
        group: Group,
        records: Sequence[KeyAndValue],
        done: Appended,
        acks: int | None = None,
    ) -> None:
        now = self._now_ms()
        builder = BatchBuilder(codec=self._settings.codec)
        for key, value in records:
            builder.append(now, key, value)
        required = self._settings.required_acks if acks is None else acks
        index = self._partition_for(group.group_id)
        try:
            info = self._replicas.append(
                GROUP_METADATA_TOPIC, index, memoryview(builder.build()), required
            )
        except EXPECTED_FAILURES as error:
            logger.debug("Append for group %s failed: %s", group.group_id, error)
            done(error_code(error), NO_OFFSET)
            return
        partition = self._replicas.partitions[GROUP_METADATA_TOPIC, index]
        if required == NO_ACKS:
            done(ErrorCode.NONE, info.first_offset)
        else:
            self._await_flush(
                partition,
                lambda error: self._await_commit(
                    partition, required, error, lambda code: done(code, info.first_offset)
                ),
            )

    def _await_flush(self, partition: Partition, done: Callable[[ErrorCode], None]) -> None:
        """Where flush.messages made a flush due, nothing is acknowledged before it is done."""
        flush = self._flusher.pending(partition.log) if self._flusher.is_busy else None
        if flush is None:
            done(ErrorCode.NONE)
            return

        def flushed(task: "asyncio.Task[None]") -> None:
            error = None if task.cancelled() else task.exception()
            done(ErrorCode.NONE if error is None else error_code(_as_exception(error)))

        flush.add_done_callback(flushed)

    def _await_commit(
        self,
        partition: Partition,
        acks: int,
        error: ErrorCode,
        done: Callable[[ErrorCode], None],
    ) -> None:
        if error != ErrorCode.NONE or acks != ALL_IN_SYNC or not partition.is_uncommitted:
            done(error)
            return
        result = PartitionProduceResponse(index=partition.index)
        waiting = WaitingPartition(partition, partition.log.end_offset, result)
        parked = self._replicas.delayed_produces.park(
            DelayedProduce(ProduceResponse(), [waiting]),
            [partition.key],
            self._settings.timeout_ms / 1000,
        )
        parked.when_done(lambda _parked: done(ErrorCode(result.error_code)))


def group_value(group: Group, assignment: Mapping[str, bytes]) -> GroupValue:
    """A group as its record tells of it."""
    protocol = group.protocol
    return GroupValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=protocol,
        leader=group.leader_id,
        current_state_timestamp=(
            NO_TIMESTAMP if group.state_timestamp is None else group.state_timestamp
        ),
        members=[
            GroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=b"" if protocol is None else member.metadata(protocol),
                assignment=assignment[member.member_id],
            )
            for member in group.members.values()
        ],
    )


def _group_key(group: Group) -> bytes:
    return encode_group_key(GroupKey(group=group.group_id))


def _offset_key(group: Group, partition: TopicPartition) -> bytes:
    return encode_offset_key(
        OffsetKey(group=group.group_id, topic=partition[0], partition=partition[1])
    )


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(str(error))
