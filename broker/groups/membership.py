"""What members ask for: to join, to know their assignment, to stay, to leave.

Each question is answered by the state of the group and what is known of the member, with Kafka's
error codes. Rebalances are begun here and carried out by rebalances.py.
"""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker.groups.group import Group
from broker.groups.member import Member, Protocols
from broker.groups.rebalances import Rebalances
from broker.groups.results import NO_MEMBER_ID, JoinResult, SyncResult
from broker.groups.sessions import NEW_MEMBER_TIMEOUT_MS
from broker.groups.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from network.protocol import ErrorCode

logger = logging.getLogger(__name__)

JoinReply = Callable[[JoinResult], None]
SyncReply = Callable[[SyncResult], None]


@dataclass(frozen=True, slots=True)
class Joining:
    """A JoinGroup."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    # From version 4 on a member first gets an id and joins with that.
    needs_known_id: bool

    @property
    def is_unknown(self) -> bool:
        return self.member_id == NO_MEMBER_ID

    def refused(self, error: ErrorCode) -> JoinResult:
        return JoinResult(self.member_id, error)


@dataclass(frozen=True, slots=True)
class Syncing:
    """A SyncGroup; only the leader's carries an assignment."""

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignment: Mapping[str, bytes]


class Membership:
    """Answers the members of groups that are known to be coordinated here."""

    def __init__(self, rebalances: Rebalances, max_size: int) -> None:
        self._rebalances = rebalances
        self._max_size = max_size

    # Join

    def join(self, group: Group, joining: Joining, reply: JoinReply) -> None:
        if self._has_no_room_for(group, joining):
            known = group.members.get(joining.member_id)
            if known is not None:
                group.remove(known)
            group.forget_pending(joining.member_id)
            reply(JoinResult(NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif group.is_dead:
            reply(joining.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif not group.supports(joining.protocol_type, [name for name, _ in joining.protocols]):
            reply(joining.refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif joining.is_unknown:
            self._join_unknown(group, joining, reply)
        elif group.is_pending(joining.member_id):
            self._add(group, joining, joining.member_id, reply)
        else:
            self._join_known(group, joining, reply)
        if group.state is PREPARING_REBALANCE:
            self._rebalances.check(group)

    def _has_no_room_for(self, group: Group, joining: Joining) -> bool:
        """Of a group that is too large, those are shed that have not joined yet."""
        if joining.is_unknown or group.is_pending(joining.member_id):
            return len(group.members) >= self._max_size
        member = group.members.get(joining.member_id)
        return (
            len(group.members) > self._max_size
            and member is not None
            and not member.is_awaiting_join
        )

    def _join_unknown(self, group: Group, joining: Joining, reply: JoinReply) -> None:
        new_id = f"{joining.group_instance_id or joining.client_id}-{uuid.uuid4()}"
        if group.static_member(joining.group_instance_id) is not None:
            self._return_static(group, joining, new_id, reply)
        elif joining.needs_known_id:
            self._rebalances.sessions.await_pending(group, new_id, joining.session_timeout_ms)
            reply(JoinResult(new_id, ErrorCode.MEMBER_ID_REQUIRED))
        else:
            self._add(group, joining, new_id, reply)

    def _join_known(self, group: Group, joining: Joining, reply: JoinReply) -> None:
        member = group.members.get(joining.member_id)
        instance_id = joining.group_instance_id
        if group.is_fenced(joining.member_id, instance_id):
            reply(joining.refused(ErrorCode.FENCED_INSTANCE_ID))
        elif member is None or (
            instance_id is not None and instance_id not in group.static_members
        ):
            reply(joining.refused(ErrorCode.UNKNOWN_MEMBER_ID))
        elif self._knows_its_generation(group, member, joining):
            reply(group.join_result(member))
        elif group.state is EMPTY:
            reply(joining.refused(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            group.update(member, joining.protocols, reply)
            self._rebalances.prepare_if_possible(
                group, f"member {member.member_id} joined with other metadata"
            )

    def _knows_its_generation(self, group: Group, member: Member, joining: Joining) -> bool:
        """A join that changes nothing: its first answer was lost, or a follower repeats itself.

        The leader of a stable group asks for a rebalance by joining: it has seen topics change.
        """
        if list(member.protocols) != list(joining.protocols):
            return False
        if group.state is COMPLETING_REBALANCE:
            return True
        return group.state is STABLE and member.member_id != group.leader_id

    def _add(self, group: Group, joining: Joining, member_id: str, reply: JoinReply) -> None:
        member = Member(
            member_id,
            joining.group_instance_id,
            joining.client_id,
            joining.client_host,
            joining.rebalance_timeout_ms,
            joining.session_timeout_ms,
            joining.protocol_type,
            joining.protocols,
            is_new=True,
        )
        if group.state is PREPARING_REBALANCE and group.generation == 0:
            group.new_member_added = True
        group.forget_pending(member_id)
        group.add(member, reply)
        self._rebalances.sessions.extend(group, member, NEW_MEMBER_TIMEOUT_MS)
        self._rebalances.prepare_if_possible(group, f"member {member_id} is new")

    def _return_static(self, group: Group, joining: Joining, new_id: str, reply: JoinReply) -> None:
        """A static member has restarted: it takes its own place, and the old one is fenced."""
        assert joining.group_instance_id is not None
        leader_id = group.leader_id
        old_id = group.static_members[joining.group_instance_id]
        logger.info(
            "Static member %s of group %s returns as %s, %s is fenced",
            joining.group_instance_id,
            group.group_id,
            new_id,
            old_id,
        )
        self._rebalances.dismiss(group, group.members[old_id], ErrorCode.FENCED_INSTANCE_ID, old_id)
        member = group.replace_static(old_id, new_id)
        self._rebalances.sessions.extend(group, member)
        group.update(member, joining.protocols, reply)
        if group.state is STABLE:
            # Told the old leader's id, a returned leader does not assign anew: a stable group
            # would not pass its assignment on.
            result = group.join_result(member)._replace(leader_id=leader_id, members=())
            self._rebalances.answer_join(group, member, result)
        elif group.state is COMPLETING_REBALANCE:
            # The leader may have been told the old id already and would assign to that.
            self._rebalances.prepare(group, f"static member {joining.group_instance_id} is back")

    # Sync

    def sync(self, group: Group, syncing: Syncing, reply: SyncReply) -> None:
        error = self._check_member(
            group, syncing.member_id, syncing.group_instance_id, syncing.generation
        )
        if error == ErrorCode.NONE and not _speaks_protocol(group, syncing):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if error == ErrorCode.NONE and group.state is PREPARING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error != ErrorCode.NONE:
            reply(SyncResult(error))
            return
        member = group.members[syncing.member_id]
        if group.state is STABLE:
            reply(group.sync_result(member))
            self._rebalances.sessions.extend(group, member)
            return
        member.sync_reply = reply
        if syncing.member_id == group.leader_id:
            self._rebalances.assign(group, syncing.assignment)

    # Heartbeat

    def heartbeat(
        self, group: Group, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        error = self._check_member(group, member_id, group_instance_id, generation)
        if error != ErrorCode.NONE:
            return error
        if group.state is COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        self._rebalances.sessions.extend(group, group.members[member_id])
        if group.state is PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # Leave

    def leave(self, group: Group, leaving: Sequence[tuple[str, str | None]]) -> list[ErrorCode]:
        return [self._leave(group, *identity) for identity in leaving]

    def _leave(self, group: Group, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Administrators name a static member by its instance id alone."""
        if member_id != NO_MEMBER_ID and group.is_fenced(member_id, group_instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        if group.is_pending(member_id):
            self._rebalances.remove_pending(group, member_id)
            return ErrorCode.NONE
        member = group.static_member(group_instance_id) or group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        logger.info("Member %s has left group %s", member.member_id, group.group_id)
        self._rebalances.remove(group, member, f"member {member.member_id} has left")
        return ErrorCode.NONE

    # What all of them have to pass

    def _check_member(
        self, group: Group, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Whether this is a member of the current generation."""
        if group.is_dead:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.is_fenced(member_id, group_instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.UNKNOWN_MEMBER_ID if group.state is EMPTY else ErrorCode.NONE


def _speaks_protocol(group: Group, syncing: Syncing) -> bool:
    return syncing.protocol_type in (None, group.protocol_type) and syncing.protocol in (
        None,
        group.protocol,
    )
