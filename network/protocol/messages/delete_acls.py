"""DeleteAcls (31): access rules to be removed, chosen by filters."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(null="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(null="0+")
    host_filter: str | None = string(null="0+")
    operation: int = int8()
    permission_type: int = int8()


class DeleteAclsRequest(Request, api=ApiKey.DELETE_ACLS, versions="0-3", flexible="2+"):
    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Struct):
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DeleteAclsFilterResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Response, api=ApiKey.DELETE_ACLS, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)
