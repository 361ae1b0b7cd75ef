"""AlterPartitionReassignments (45): partitions to be moved, or such moves called off."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int16, int32, string


class ReassignablePartition(Struct):
    partition_index: int = int32()
    replicas: list[int] | None = array(int32, null="0+", default=None)


class ReassignableTopic(Struct):
    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(
    Request, api=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    timeout_ms: int = int32(default=60000)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class ReassignablePartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


class ReassignableTopicResponse(Struct):
    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(
    Response, api=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
