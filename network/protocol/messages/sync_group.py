"""SyncGroup (14): the leader's assignment reaches the members of a group."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, binary, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    member_id: str = string()
    assignment: bytes = binary()


class SyncGroupRequest(Request, api=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", null="3+", default=None)
    protocol_type: str | None = string("5+", null="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", null="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Response, api=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", null="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", null="5+", default=None, ignorable=True)
    assignment: bytes = binary()
