"""The group coordinator: everything that handlers may ask about groups.

Checks that a group id is one, that the group is coordinated here and has been loaded, and hands
over to the parts that know: membership, rebalances, commits. Errors are codes, not exceptions.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from broker.groups.commits import CommitReply, CommitResult, Committing, OffsetCommits
from broker.groups.group import Group
from broker.groups.membership import Joining, JoinReply, Membership, Syncing, SyncReply
from broker.groups.offsets import CommittedOffset, TopicPartition
from broker.groups.outbox import Outbox
from broker.groups.rebalances import Rebalances
from broker.groups.registry import GroupRegistry
from broker.groups.results import LeaveResult, SyncResult
from broker.groups.settings import GroupSettings
from broker.groups.states import DEAD
from broker.groups.store import GroupStore
from broker.log_flusher import LogFlusher
from broker.partition import Partition
from broker.replica_manager import ReplicaManager
from broker.timing_wheel import TimingWheel
from broker.topic_names import GROUP_METADATA_TOPIC
from network.protocol import ErrorCode

logger = logging.getLogger(__name__)

FetchResult = dict[TopicPartition, CommittedOffset | ErrorCode | None]


class GroupCoordinator:
    """Looks after the groups of the partitions of `__consumer_offsets` that are led here."""

    def __init__(
        self,
        settings: GroupSettings,
        partitions: int,
        replicas: ReplicaManager,
        flusher: LogFlusher,
        timers: TimingWheel,
        call_soon: Callable[[Callable[[], object]], object],
        now_ms: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.registry = GroupRegistry(
            replicas, partitions, settings.load_buffer_bytes, now_ms, self._loaded, self._unloaded
        )
        store = GroupStore(replicas, flusher, settings.store, self.registry.partition_for, now_ms)
        self._rebalances = Rebalances(
            timers, Outbox(call_soon), store, now_ms, settings.initial_rebalance_delay_ms
        )
        self._membership = Membership(self._rebalances, settings.max_size)
        self._commits = OffsetCommits(
            self.registry,
            store,
            self._rebalances.sessions,
            settings.max_metadata_length,
            now_ms,
        )
        self.now_ms = now_ms
        self._is_active = True
        replicas.on_leadership_changed(self._leadership_changed)

    async def stop(self) -> None:
        """Send away whoever waits; who asks from now on is told to look elsewhere."""
        self._is_active = False
        await self.registry.stop()
        await asyncio.sleep(0)  # the answers go out in the next turn

    # Members

    def join(self, joining: Joining, reply: JoinReply) -> None:
        error, group = self._look_up(joining.group_id)
        settings = self.settings
        timeouts = range(settings.min_session_timeout_ms, settings.max_session_timeout_ms + 1)
        if error == ErrorCode.NONE and joining.session_timeout_ms not in timeouts:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        elif error == ErrorCode.NONE and group is None:
            if joining.is_unknown:
                group = self.registry.add(joining.group_id)
            else:
                error = ErrorCode.UNKNOWN_MEMBER_ID
        if group is None or error != ErrorCode.NONE:
            reply(joining.refused(error))
        else:
            self._membership.join(group, joining, reply)

    def sync(self, syncing: Syncing, reply: SyncReply) -> None:
        error, group = self._look_up(syncing.group_id)
        if group is not None:
            self._membership.sync(group, syncing, reply)
        elif error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance is lost with the coordinator that began it, and old clients do not
            # expect to hear of loading here: have them join again.
            reply(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        else:
            reply(SyncResult(error or ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        error, group = self._look_up(group_id)
        if group is not None:
            return self._membership.heartbeat(group, member_id, group_instance_id, generation)
        if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE
        return error or ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group_id: str, leaving: Sequence[tuple[str, str | None]]) -> LeaveResult:
        """Members by id and instance id."""
        error, group = self._look_up(group_id)
        if group is not None:
            return LeaveResult(ErrorCode.NONE, self._membership.leave(group, leaving))
        if error != ErrorCode.NONE:
            return LeaveResult(error)
        return LeaveResult(ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving))

    # Offsets

    def commit(self, committing: Committing, reply: CommitReply) -> None:
        error, group = self._look_up(committing.group_id, may_be_empty=True)
        if error == ErrorCode.NONE and group is None:
            if committing.is_from_member:
                error = ErrorCode.ILLEGAL_GENERATION
            else:
                group = self.registry.add(committing.group_id)
        if group is None:
            reply(committing.refused(error))
        else:
            self._commits.commit(group, committing, reply)

    def fetch(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool,
    ) -> tuple[ErrorCode, FetchResult]:
        """What is committed for partitions, or for all that have something; None for nothing."""
        error, group = self._look_up(group_id, may_be_empty=True)
        if error != ErrorCode.NONE:
            return error, {}
        return error, self._commits.fetch(group, partitions, require_stable=require_stable)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, CommitResult]:
        error, group = self._look_up(group_id)
        if group is None:
            return error or ErrorCode.GROUP_ID_NOT_FOUND, {}
        return self._commits.delete_offsets(group, partitions)

    def forget_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions were deleted."""
        self._commits.forget_partitions(partitions)

    def remove_expired_offsets(self) -> None:
        self._commits.remove_expired(self.settings.retention_ms)

    # Groups as a whole

    def groups(self) -> tuple[ErrorCode, list[Group]]:
        if not self._is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        loading = self.registry.is_loading
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
        return error, list(self.registry)

    def describe(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        """A group; None where there is none."""
        return self._look_up(group_id, may_be_empty=True)

    def delete_group(self, group_id: str) -> ErrorCode:
        error, group = self._look_up(group_id, may_be_empty=True)
        if group is None:
            return error or ErrorCode.GROUP_ID_NOT_FOUND
        error = self._commits.delete_group(group)
        if error == ErrorCode.NONE:
            self._rebalances.stop(group, ErrorCode.UNKNOWN_MEMBER_ID)
        return error

    # Leadership

    def _look_up(
        self, group_id: str, *, may_be_empty: bool = False
    ) -> tuple[ErrorCode, Group | None]:
        """A group that is here and may be spoken for; only what concerns offsets may name none."""
        group = self.registry.groups.get(group_id)
        if group is not None and (group_id or may_be_empty):
            return ErrorCode.NONE, group
        if not group_id and not may_be_empty:
            return ErrorCode.INVALID_GROUP_ID, None
        if not self._is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
        return self.registry.check(group_id), None

    def _leadership_changed(self, partition: Partition) -> None:
        if partition.topic == GROUP_METADATA_TOPIC:
            if partition.is_leader:
                self.registry.elected(partition.index)
            else:
                self.registry.resigned(partition.index)

    def _loaded(self, group: Group) -> None:
        if len(group.members) > self.settings.max_size:
            self._rebalances.prepare(group, "it was loaded with more members than it may have")
        for member in group.members.values():
            self._rebalances.sessions.extend(group, member)

    def _unloaded(self, group: Group) -> None:
        logger.info("Unloading %s", group)
        group.become(DEAD, self.now_ms())
        self._rebalances.stop(group, ErrorCode.NOT_COORDINATOR)
