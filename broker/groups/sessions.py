"""Sessions of members: who was not heard of for too long is gone.

A heartbeat puts the member's timer off, which costs the wheel next to nothing.
"""

from collections.abc import Callable
from typing import Final

from broker.groups.group import Group
from broker.groups.member import Member
from broker.timing_wheel import TimingWheel

# A new member has no id to send heartbeats with, and a client that gave up tries again with a new
# join: joins that nobody waits for any more must not be counted for ever.
NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000


class Sessions:
    """The timers of all members of all groups."""

    def __init__(
        self,
        timers: TimingWheel,
        on_expired: Callable[[Group, Member], None],
        on_pending_expired: Callable[[Group, str], None],
    ) -> None:
        self._timers = timers
        self._on_expired = on_expired
        self._on_pending_expired = on_pending_expired

    def extend(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """A member was heard of: its session begins anew."""
        seconds = (member.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        if member.timer is None:
            member.timer = self._timers.schedule(seconds, lambda: self._over(group, member))
        else:
            member.timer.reschedule(seconds)

    def await_pending(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """An id was handed out; it is taken back unless its member comes with it."""
        group.pending_members[member_id] = self._timers.schedule(
            timeout_ms / 1000, lambda: self._on_pending_expired(group, member_id)
        )

    def _over(self, group: Group, member: Member) -> None:
        if not member.is_alive_by_waiting:
            self._on_expired(group, member)
