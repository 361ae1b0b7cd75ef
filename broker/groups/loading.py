"""Groups as a partition of `__consumer_offsets` tells of them, put together batch by batch.

Owns what each record means for the whole: the last word on a group or an offset holds, commits of
a transaction count from its marker on. Must not know where batches come from or what becomes of
the groups.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator

from broker.groups.group import Group
from broker.groups.member import Member
from broker.groups.offsets import CommittedOffset, TopicPartition
from broker.groups.record_formats import (
    NO_TIMESTAMP,
    GroupKey,
    GroupValue,
    OffsetKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
)
from broker.groups.states import EMPTY, STABLE
from broker.versioned_records import MalformedRecordError
from storage.records import Batch, Record, iter_records
from storage.records.control import ControlType, parse_control_type

logger = logging.getLogger(__name__)

_GroupPartition = tuple[str, TopicPartition]


class GroupLoader:
    """Takes batches in the order of the log; then `groups` gives what they add up to."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupValue] = {}
        self._committed: dict[_GroupPartition, CommittedOffset] = {}
        self._in_transactions: dict[int, dict[_GroupPartition, CommittedOffset]] = {}

    def take(self, batch: Batch) -> None:
        if batch.header.is_control:
            self._end_transaction(batch)
            return
        first_offset: int | None = None
        for record in iter_records(batch):
            if first_offset is None:
                first_offset = record.offset
            try:
                self._take_record(batch, record, first_offset)
            except MalformedRecordError as error:
                logger.warning("The record at offset %d is skipped: %s", record.offset, error)

    def groups(self, now_ms: int) -> Iterator[Group]:
        """Every group, with its offsets; one that only ever committed has no record of its own."""
        committed: dict[str, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
        for (group_id, partition), commit in self._committed.items():
            committed[group_id][partition] = commit
        open_commits: dict[str, dict[int, dict[TopicPartition, CommittedOffset]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for producer_id, commits in self._in_transactions.items():
            for (group_id, partition), commit in commits.items():
                open_commits[group_id][producer_id][partition] = commit
        for group_id in dict.fromkeys((*self._groups, *committed, *open_commits)):
            value = self._groups.get(group_id)
            group = Group(group_id, EMPTY, now_ms) if value is None else make_group(group_id, value)
            group.offsets.load(committed.get(group_id, {}), open_commits.get(group_id, {}))
            yield group

    def _take_record(self, batch: Batch, record: Record, batch_offset: int) -> None:
        if record.key is None:
            raise MalformedRecordError("it has no key")
        key = decode_key(record.key)
        if isinstance(key, GroupKey):
            self._take_group(key, record.value)
        else:
            self._take_offset(batch, key, record.value, batch_offset)

    def _take_group(self, key: GroupKey, data: bytes | None) -> None:
        if data is None:
            self._groups.pop(key.group, None)
        else:
            self._groups[key.group] = decode_group_value(data)

    def _take_offset(
        self, batch: Batch, key: OffsetKey, data: bytes | None, batch_offset: int
    ) -> None:
        offsets = self._committed
        if batch.header.is_transactional:
            offsets = self._in_transactions.setdefault(batch.header.producer_id, {})
        place = (key.group, (key.topic, key.partition))
        if data is None:
            offsets.pop(place, None)
            return
        value = decode_offset_value(data)
        offsets[place] = CommittedOffset(
            value.offset,
            value.metadata,
            value.leader_epoch,
            value.commit_timestamp,
            value.expire_timestamp,
            batch_offset,
        )

    def _end_transaction(self, batch: Batch) -> None:
        for record in iter_records(batch):
            commits = self._in_transactions.pop(batch.header.producer_id, {})
            if parse_control_type(record.key) is not ControlType.COMMIT:
                return
            for place, commit in commits.items():
                known = self._committed.get(place)
                if known is None or known.written_at < commit.written_at:
                    self._committed[place] = commit


def make_group(group_id: str, value: GroupValue) -> Group:
    """A group as its record tells of it: stable if it has members."""
    timestamp = value.current_state_timestamp
    group = Group(
        group_id,
        STABLE if value.members else EMPTY,
        None if timestamp == NO_TIMESTAMP else timestamp,
    )
    group.generation = value.generation
    group.leader_id = value.leader
    for one in value.members:
        member = Member(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.rebalance_timeout,
            one.session_timeout,
            value.protocol_type,
            [] if value.protocol is None else [(value.protocol, one.subscription)],
            one.assignment,
        )
        group.add(member)
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    group.remember_subscriptions()
    return group
