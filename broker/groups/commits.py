"""Offsets as clients ask for them: to commit, to fetch, to delete, to let expire.

Decides who may commit, and has every change written before it counts.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.groups.consumer_protocol import PROTOCOL_TYPE
from broker.groups.group import Group
from broker.groups.offsets import Commits, CommittedOffset, TopicPartition
from broker.groups.registry import GroupRegistry
from broker.groups.sessions import Sessions
from broker.groups.states import COMPLETING_REBALANCE, DEAD, EMPTY
from broker.groups.store import GroupStore
from network.protocol import ErrorCode

logger = logging.getLogger(__name__)

CommitResult = Mapping[TopicPartition, ErrorCode]
CommitReply = Callable[[CommitResult], None]


@dataclass(frozen=True, slots=True)
class Committing:
    """An OffsetCommit; without a generation it comes from a consumer that assigns itself."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation: int
    offsets: Commits

    @property
    def is_from_member(self) -> bool:
        return self.generation >= 0

    def refused(self, error: ErrorCode) -> CommitResult:
        return dict.fromkeys(self.offsets, error)


class OffsetCommits:
    """The offsets of groups that are known to be coordinated here."""

    def __init__(
        self,
        registry: GroupRegistry,
        store: GroupStore,
        sessions: Sessions,
        max_metadata_length: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._store = store
        self._sessions = sessions
        self._max_metadata_length = max_metadata_length
        self._now_ms = now_ms

    def commit(self, group: Group, committing: Committing, reply: CommitReply) -> None:
        error = self._check(group, committing)
        if error != ErrorCode.NONE:
            reply(committing.refused(error))
            return
        member = group.members.get(committing.member_id)
        if member is not None:
            self._sessions.extend(group, member)
        accepted = {
            partition: commit
            for partition, commit in committing.offsets.items()
            if _java_length(commit.metadata) <= self._max_metadata_length
        }
        refused = {
            partition: ErrorCode.OFFSET_METADATA_TOO_LARGE
            for partition in committing.offsets
            if partition not in accepted
        }
        if not accepted:
            reply(refused)
            return

        def stored(error: ErrorCode, written_at: int) -> None:
            if error == ErrorCode.NONE:
                group.offsets.written(accepted, written_at)
            else:
                group.offsets.failed(accepted)
            reply(dict.fromkeys(accepted, error) | refused)

        group.offsets.begin(accepted)
        self._store.store_offsets(group, accepted, stored)

    def _check(self, group: Group, committing: Committing) -> ErrorCode:
        if group.is_dead:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.is_fenced(committing.member_id, committing.group_instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        if not committing.is_from_member and group.state is EMPTY:
            return ErrorCode.NONE
        if committing.member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if committing.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        # A rebalance that is being prepared leaves time to commit what was read.
        if group.state is COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def fetch(
        self,
        group: Group | None,
        partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool,
    ) -> dict[TopicPartition, CommittedOffset | ErrorCode | None]:
        """What is committed for partitions, or for all that have something; None for nothing."""
        if group is None or group.is_dead:
            return dict.fromkeys(partitions or ())
        offsets = group.offsets
        wanted = offsets.committed if partitions is None else partitions
        return {
            one: (
                ErrorCode.UNSTABLE_OFFSET_COMMIT
                if require_stable and offsets.is_unstable(one)
                else offsets.committed.get(one)
            )
            for one in wanted
        }

    def delete_group(self, group: Group) -> ErrorCode:
        """Forget a group without members, once its tombstones are written."""
        if group.state is not EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        return self._remove(group, list(group.offsets.committed), whole=True)

    def delete_offsets(
        self, group: Group, partitions: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, CommitResult]:
        """Forget offsets that no consumer of the group needs."""
        kept: set[TopicPartition] = set()
        if group.state is not EMPTY:
            if group.protocol_type != PROTOCOL_TYPE:
                return ErrorCode.NON_EMPTY_GROUP, {}
            topics = group.subscribed_topics
            kept = {one for one in partitions if topics is None or one[0] in topics}
        removed = [one for one in partitions if one not in kept]
        error = self._remove(group, removed)
        if error != ErrorCode.NONE:
            return error, {}
        return ErrorCode.NONE, {
            one: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if one in kept else ErrorCode.NONE
            for one in partitions
        }

    def forget_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions were deleted, and nobody can read what the offsets point to."""
        for group in self._registry:
            self._remove(group, partitions)

    def remove_expired(self, retention_ms: int) -> None:
        """Forget offsets that have not been needed for long, and groups without any."""
        now = self._now_ms()
        removed = 0
        for group in self._registry:
            expired = expired_offsets(group, now, retention_ms)
            if self._remove(group, expired) == ErrorCode.NONE:
                removed += len(expired)
        if removed:
            logger.info("Removed %d expired offsets", removed)

    def _remove(
        self, group: Group, partitions: Sequence[TopicPartition], *, whole: bool = False
    ) -> ErrorCode:
        """Write tombstones, then forget; a group that is left with nothing goes as well."""
        committed = [one for one in partitions if one in group.offsets.committed]
        ends = whole or (
            group.state is EMPTY
            and not group.pending_members
            and group.offsets.would_be_empty_without(partitions)
        )
        # A group that never had a generation has no record of its own.
        error = self._store.remove(group, committed, whole=ends and group.generation > 0)
        if error != ErrorCode.NONE:
            return error
        group.offsets.remove(partitions)
        if ends:
            logger.info("Group %s of generation %d is gone", group.group_id, group.generation)
            group.become(DEAD, self._now_ms())
            self._registry.remove(group)
        return ErrorCode.NONE


def expired_offsets(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """What a group has not needed for the time of retention, by Kafka's rules since 2.1."""
    offsets = group.offsets
    if group.protocol_type is None:
        # Consumers that assign themselves: each offset counts from its own commit.
        return offsets.expired(now_ms, retention_ms, _committed_at)
    if group.state is EMPTY:
        # All count from the moment at which the last member left, if that is known.
        emptied_at = group.state_timestamp
        if emptied_at is None:
            return offsets.expired(now_ms, retention_ms, _committed_at)
        return offsets.expired(now_ms, retention_ms, lambda _commit: emptied_at)
    if group.protocol_type == PROTOCOL_TYPE and group.subscribed_topics is not None:
        # Members are there: what they no longer subscribe to counts from its commit.
        return offsets.expired(now_ms, retention_ms, _committed_at, group.subscribed_topics)
    return []


def _committed_at(commit: CommittedOffset) -> int:
    return commit.commit_timestamp


def _java_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
