"""A member of a group: what it told of itself, what it was assigned, what it waits for."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from broker.groups.results import JoinResult, SyncResult
from broker.timing_wheel import Timer

Protocols = Sequence[tuple[str, bytes]]
"""Names of assignment strategies with the member's data for each, the most preferred first."""


@dataclass(slots=True, eq=False)
class Member:
    """One consumer, or whatever else coordinates itself through a group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    # It has never been through a rebalance, so its first join may time out.
    is_new: bool = False
    join_reply: Callable[[JoinResult], None] | None = None
    sync_reply: Callable[[SyncResult], None] | None = None
    # When its session ends.
    timer: Timer | None = field(default=None, repr=False)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_reply is not None

    @property
    def is_alive_by_waiting(self) -> bool:
        """Who waits for a rebalance cannot send heartbeats and need not."""
        waits = self.join_reply is not None or self.sync_reply is not None
        return waits and not self.is_new

    def metadata(self, protocol: str) -> bytes:
        """Its data for a protocol; nothing if it has none, as after a static member's return."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """The protocol that it likes best among those that all members know."""
        return next(name for name, _ in self.protocols if name in candidates)
