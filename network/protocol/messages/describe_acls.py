"""DescribeAcls (29): access rules that match a filter."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Request, api=ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+"):
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(null="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(null="0+")
    host_filter: str | None = string(null="0+")
    operation: int = int8()
    permission_type: int = int8()


class AclDescription(Struct):
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Response, api=ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
