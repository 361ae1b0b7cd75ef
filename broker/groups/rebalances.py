"""Rebalances: members are called together, wait for each other, and form the next generation.

Owns the way from the first reason for a rebalance to the moment at which all know their
assignment, and the timers of that wait. Which request means what is membership's business.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from broker.groups.group import Group, PendingJoin
from broker.groups.member import Member
from broker.groups.outbox import Outbox
from broker.groups.results import NO_MEMBER_ID, JoinResult, SyncResult
from broker.groups.sessions import Sessions
from broker.groups.states import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from broker.groups.store import GroupStore
from broker.timing_wheel import TimingWheel
from network.protocol import ErrorCode

logger = logging.getLogger(__name__)

# Whatever a client asks for, a wait is one: a group whose members never rejoin waits repeatedly.
SHORTEST_WAIT_MS: Final = 100


class Rebalances:
    """Brings groups from one generation to the next."""

    def __init__(
        self,
        timers: TimingWheel,
        outbox: Outbox,
        store: GroupStore,
        now_ms: Callable[[], int],
        initial_delay_ms: int,
    ) -> None:
        self.sessions = Sessions(timers, self._session_expired, self._pending_expired)
        self._timers = timers
        self._outbox = outbox
        self._store = store
        self._now_ms = now_ms
        self._initial_delay_ms = initial_delay_ms

    # From a reason to the wait

    def prepare_if_possible(self, group: Group, reason: str) -> None:
        if group.can_become(PREPARING_REBALANCE):
            self.prepare(group, reason)

    def prepare(self, group: Group, reason: str) -> None:
        """Call the members together; who waits for an assignment of this generation gets none."""
        if group.state is COMPLETING_REBALANCE:
            self._fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        was_empty = group.state is EMPTY
        group.become(PREPARING_REBALANCE, self._now_ms())
        logger.info(
            "Preparing to rebalance group %s with old generation %d (reason: %s)",
            group.group_id,
            group.generation,
            reason,
        )
        if was_empty:
            remaining = max(group.rebalance_timeout_ms - self._initial_delay_ms, 0)
            self._wait_initially(group, self._initial_delay_ms, remaining)
        else:
            self._wait(group)
            self.check(group)

    def check(self, group: Group) -> None:
        """Go on if everybody is there; a new group waits for more members in any case."""
        waiting = group.pending_join
        if waiting is not None and not waiting.is_initial and group.has_all_joined:
            self._complete(group)

    def remove(self, group: Group, member: Member, reason: str) -> None:
        """A member is gone; the others share what it had."""
        self.dismiss(group, member, ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER_ID)
        group.remove(member)
        if group.state in (STABLE, COMPLETING_REBALANCE):
            self.prepare_if_possible(group, reason)
        elif group.state is PREPARING_REBALANCE:
            self.check(group)

    def remove_pending(self, group: Group, member_id: str) -> None:
        group.forget_pending(member_id)
        if group.state is PREPARING_REBALANCE:
            self.check(group)

    def answer_join(self, group: Group, member: Member, result: JoinResult) -> None:
        """Answer its JoinGroup, if it waits for that."""
        reply = group.take_join_reply(member)
        if reply is not None:
            self._outbox.send(reply, result)

    def answer_sync(self, member: Member, result: SyncResult) -> bool:
        """Answer its SyncGroup, if it waits for that."""
        reply, member.sync_reply = member.sync_reply, None
        if reply is None:
            return False
        self._outbox.send(reply, result)
        return True

    def dismiss(self, group: Group, member: Member, error: ErrorCode, member_id: str) -> None:
        """Whatever a member waits for, it will not get."""
        self.answer_join(group, member, JoinResult(member_id, error))
        self.answer_sync(member, SyncResult(error))

    def stop(self, group: Group, error: ErrorCode) -> None:
        """Give a group up: end its timers and send away whoever waits."""
        if group.pending_join is not None:
            group.pending_join.timer.cancel()
            group.pending_join = None
        for member_id in list(group.pending_members):
            group.forget_pending(member_id)
        for member in group.members.values():
            self.dismiss(group, member, error, member.member_id)
            if member.timer is not None:
                member.timer.cancel()

    def _wait(self, group: Group) -> None:
        delay_ms = max(group.rebalance_timeout_ms, SHORTEST_WAIT_MS)
        timer = self._timers.schedule(delay_ms / 1000, lambda: self._complete(group))
        group.pending_join = PendingJoin(timer)

    def _wait_initially(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        timer = self._timers.schedule(delay_ms / 1000, lambda: self._initial_wait_over(group))
        group.pending_join = PendingJoin(timer, True, delay_ms, remaining_ms)

    def _initial_wait_over(self, group: Group) -> None:
        """Somebody came meanwhile: more may be coming, and every rebalance saved is worth it."""
        waiting = group.pending_join
        assert waiting is not None
        if group.new_member_added and waiting.remaining_ms:
            group.new_member_added = False
            delay = min(self._initial_delay_ms, waiting.remaining_ms)
            remaining = max(waiting.remaining_ms - waiting.delay_ms, 0)
            self._wait_initially(group, delay, remaining)
        else:
            self._complete(group)

    # From the wait to the generation

    def _complete(self, group: Group) -> None:
        """All are there, or their time is up: who did not come is out, unless it is static."""
        if group.pending_join is not None:
            group.pending_join.timer.cancel()
            group.pending_join = None
        for member in group.not_rejoined():
            if not member.is_static:
                group.remove(member)
        if group.is_dead:
            return
        if not group.elect_joined_leader() and group.members:
            logger.error("Group %s cannot rebalance: no member rejoined", group.group_id)
            self._wait(group)
            return
        group.next_generation()
        if group.members:
            self._announce(group)
        else:
            self._become_empty(group)

    def _announce(self, group: Group) -> None:
        group.become(COMPLETING_REBALANCE, self._now_ms())
        logger.info("Stabilized group %s generation %d", group.group_id, group.generation)
        for member in list(group.members.values()):
            self.answer_join(group, member, group.join_result(member))
            member.is_new = False
            self.sessions.extend(group, member)

    def _become_empty(self, group: Group) -> None:
        group.become(EMPTY, self._now_ms())
        logger.info("Group %s with generation %d is now empty", group.group_id, group.generation)

        def stored(error: ErrorCode) -> None:
            # Lost with a crash, the previous generation comes back and times out: no harm.
            if error != ErrorCode.NONE:
                logger.warning("Cannot write the empty group %s: %s", group.group_id, error.name)

        self._store.store_group(group, {}, stored)

    # From the generation to the assignment

    def assign(self, group: Group, given: Mapping[str, bytes]) -> None:
        """The leader has spoken: write it down, and tell everybody once that is safe."""
        generation = group.generation
        assignment = {member_id: given.get(member_id, b"") for member_id in group.members}

        def stored(error: ErrorCode) -> None:
            # While the log took its time the group may have gone on without us.
            if group.state is not COMPLETING_REBALANCE or group.generation != generation:
                return
            if error != ErrorCode.NONE:
                self._fail_syncs(group, error)
                self.prepare_if_possible(group, "the assignment could not be written")
                return
            for member in group.members.values():
                member.assignment = assignment[member.member_id]
            group.become(STABLE, self._now_ms())
            self._answer_syncs(group, group.sync_result)

        self._store.store_group(group, assignment, stored)

    def _fail_syncs(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
        self._answer_syncs(group, lambda _member: SyncResult(error))

    def _answer_syncs(self, group: Group, result: Callable[[Member], SyncResult]) -> None:
        for member in list(group.members.values()):
            if self.answer_sync(member, result(member)):
                self.sessions.extend(group, member)

    # When time is up

    def _session_expired(self, group: Group, member: Member) -> None:
        logger.info(
            "Member %s in group %s has failed, removing it", member.member_id, group.group_id
        )
        self.remove(group, member, f"the session of member {member.member_id} expired")

    def _pending_expired(self, group: Group, member_id: str) -> None:
        if not group.is_dead:
            logger.info("Member id %s of group %s was never used", member_id, group.group_id)
            self.remove_pending(group, member_id)
