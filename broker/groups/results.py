"""What the coordinator answers, before it becomes a response of some version."""

from collections.abc import Sequence
from typing import NamedTuple

from network.protocol import ErrorCode

NO_GENERATION = -1
NO_MEMBER_ID = ""


class JoinedMember(NamedTuple):
    """A member as the leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The generation that a member is in, or why it is in none."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader_id: str | None = NO_MEMBER_ID
    members: Sequence[JoinedMember] = ()


class SyncResult(NamedTuple):
    """What a member is assigned in its generation, or why nothing."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class LeaveResult(NamedTuple):
    """What became of each member that was to leave, in the order of the request."""

    error: ErrorCode
    members: Sequence[ErrorCode] = ()
