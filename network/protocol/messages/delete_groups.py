"""DeleteGroups (42): groups to be removed with their offsets."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, api=ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+"):
    groups_names: list[str] = array(string)


class DeletableGroupResult(Struct):
    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Response, api=ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
