"""A group: its state, its members, its generation and its offsets.

Owns the membership and keeps its counts right. Decides nothing about when to rebalance, knows no
timers and no log: that is for the parts around it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from broker.groups.consumer_protocol import PROTOCOL_TYPE, decode_subscribed_topics
from broker.groups.member import Member, Protocols
from broker.groups.offsets import GroupOffsets
from broker.groups.results import JoinedMember, JoinResult, SyncResult
from broker.groups.states import (
    DEAD,
    EMPTY,
    PREVIOUS_STATES,
    GroupState,
    InvalidTransitionError,
)
from broker.timing_wheel import Timer
from broker.versioned_records import MalformedRecordError


@dataclass(slots=True)
class PendingJoin:
    """The wait of a rebalance for its members; an initial one only ends when its time is up."""

    timer: Timer
    is_initial: bool = False
    delay_ms: int = 0
    remaining_ms: int = 0


class Group:
    """The members that share a group id."""

    def __init__(
        self, group_id: str, state: GroupState = EMPTY, state_timestamp: int | None = None
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.state_timestamp = state_timestamp
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        # Ids that were handed out and not yet used, with the timers that take them back.
        self.pending_members: dict[str, Timer] = {}
        self.pending_join: PendingJoin | None = None
        self.new_member_added = False
        self.offsets = GroupOffsets()
        self._awaiting_join = 0
        self._supporters: Counter[str] = Counter()
        # What the members of this generation subscribed to, opened when somebody asks.
        self._subscriptions: list[bytes] = []

    def __str__(self) -> str:
        return f"group {self.group_id} in state {self.state.value}, generation {self.generation}"

    # State

    def can_become(self, state: GroupState) -> bool:
        return self.state in PREVIOUS_STATES[state]

    def become(self, state: GroupState, now_ms: int) -> None:
        if not self.can_become(state):
            raise InvalidTransitionError(f"{self} cannot become {state.value}")
        self.state = state
        self.state_timestamp = now_ms

    @property
    def is_dead(self) -> bool:
        return self.state is DEAD

    @property
    def is_idle(self) -> bool:
        """Nobody is in it, nobody is about to join, and there is nothing to remember."""
        return self.state is EMPTY and not self.pending_members and not self.offsets

    # Members

    def add(self, member: Member, reply: Callable[[JoinResult], None] | None = None) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._supporters.update(name for name, _ in member.protocols)
        self._await_join(member, reply)

    def remove(self, member: Member) -> None:
        """Take a member out; its session's timer goes with it."""
        if member.timer is not None:
            member.timer.cancel()
        if self.members.pop(member.member_id, None) is None:
            return
        self._supporters.subtract(name for name, _ in member.protocols)
        self._await_join(member, None)
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def update(
        self, member: Member, protocols: Protocols, reply: Callable[[JoinResult], None]
    ) -> None:
        """A member joins anew, perhaps with other data than before."""
        self._supporters.subtract(name for name, _ in member.protocols)
        self._supporters.update(name for name, _ in protocols)
        member.protocols = protocols
        self._await_join(member, reply)

    def replace_static(self, old_id: str, new_id: str) -> Member:
        """Give a static member its new id; it must wait for nothing under the old one."""
        member = self.members.pop(old_id)
        member.member_id = new_id
        self.members[new_id] = member
        if self.leader_id == old_id:
            self.leader_id = new_id
        assert member.group_instance_id is not None
        self.static_members[member.group_instance_id] = new_id
        return member

    def static_member(self, group_instance_id: str | None) -> Member | None:
        if group_instance_id is None:
            return None
        member_id = self.static_members.get(group_instance_id)
        return None if member_id is None else self.members[member_id]

    def is_fenced(self, member_id: str, group_instance_id: str | None) -> bool:
        """Another member has taken this instance's place."""
        member = self.static_member(group_instance_id)
        return member is not None and member.member_id != member_id

    def is_pending(self, member_id: str) -> bool:
        return member_id in self.pending_members and member_id not in self.members

    def forget_pending(self, member_id: str) -> None:
        timer = self.pending_members.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((one.rebalance_timeout_ms for one in self.members.values()), default=0)

    # Joining

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self._awaiting_join and not self.pending_members

    def not_rejoined(self) -> list[Member]:
        return [one for one in self.members.values() if not one.is_awaiting_join]

    def take_join_reply(self, member: Member) -> Callable[[JoinResult], None] | None:
        """How to answer its JoinGroup, if it waits for that; from now on it does not."""
        reply = member.join_reply
        self._await_join(member, None)
        return reply

    def elect_joined_leader(self) -> bool:
        """Have a leader that joined; False where nobody did."""
        if self.leader_id is None:
            return False
        if not self.members[self.leader_id].is_awaiting_join:
            joined = (one.member_id for one in self.members.values() if one.is_awaiting_join)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader_id = elected
        return True

    def join_result(self, member: Member) -> JoinResult:
        """What a member of the current generation is told; the leader learns of all others."""
        is_leader = member.member_id == self.leader_id
        return JoinResult(
            member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader_id=self.leader_id,
            members=self._joined_members() if is_leader else (),
        )

    def sync_result(self, member: Member) -> SyncResult:
        return SyncResult(
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            assignment=member.assignment,
        )

    # Protocols

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols can be in this group."""
        if self.state is EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == count for name in names
        )

    def next_generation(self) -> None:
        """Count on, and settle what all members will speak."""
        self.generation += 1
        self.protocol = self._elected_protocol() if self.members else None
        self.remember_subscriptions()

    def remember_subscriptions(self) -> None:
        """Members may change theirs while a rebalance is prepared; this generation's hold."""
        protocol = self.protocol
        self._subscriptions = (
            [] if protocol is None else [one.metadata(protocol) for one in self.members.values()]
        )

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """What a group of consumers reads; None where that cannot be known."""
        if self.protocol_type != PROTOCOL_TYPE:
            return None
        if not self._subscriptions:
            return None if self.members else frozenset()
        try:
            return frozenset(
                topic for data in self._subscriptions for topic in decode_subscribed_topics(data)
            )
        except MalformedRecordError:
            return None

    def _elected_protocol(self) -> str:
        count = len(self.members)
        candidates = {name for name, supporters in self._supporters.items() if supporters == count}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def _joined_members(self) -> list[JoinedMember]:
        assert self.protocol is not None
        return [
            JoinedMember(one.member_id, one.group_instance_id, one.metadata(self.protocol))
            for one in self.members.values()
        ]

    def _await_join(self, member: Member, reply: Callable[[JoinResult], None] | None) -> None:
        self._awaiting_join += (reply is not None) - member.is_awaiting_join
        member.join_reply = reply
