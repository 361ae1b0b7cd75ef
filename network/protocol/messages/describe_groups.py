"""DescribeGroups (15): the state and the members of groups."""

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


class DescribeGroupsRequest(Request, api=ApiKey.DESCRIBE_GROUPS, versions="0-5", flexible="5+"):
    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean("3+")


class DescribedGroupMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("4+", null="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


class DescribedGroup(Struct):
    error_code: int = int16()
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)


class DescribeGroupsResponse(Response, api=ApiKey.DESCRIBE_GROUPS, versions="0-5", flexible="5+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
