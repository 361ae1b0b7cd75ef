"""JoinGroup (11): a member enters a group and learns its generation."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    binary,
    boolean,
    int16,
    int32,
    string,
)


class JoinGroupRequestProtocol(Struct):
    name: str = string()
    metadata: bytes = binary()


class JoinGroupRequest(Request, api=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", null="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", null="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("5+", null="5+", default=None, ignorable=True)
    metadata: bytes = binary()


class JoinGroupResponse(Response, api=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", null="7+", default=None, ignorable=True)
    protocol_name: str | None = string(null="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
