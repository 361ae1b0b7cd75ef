"""DescribeCluster (60): the brokers of the cluster."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
)


class DescribeClusterRequest(Request, api=ApiKey.DESCRIBE_CLUSTER, versions="0-1", flexible="0+"):
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)


class DescribeClusterBroker(Struct):
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(null="0+", default=None)


class DescribeClusterResponse(Response, api=ApiKey.DESCRIBE_CLUSTER, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)
