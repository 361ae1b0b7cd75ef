"""ListPartitionReassignments (46): the moves of partitions that are under way."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int16, int32, string


class ListPartitionReassignmentsTopics(Struct):
    name: str = string()
    partition_indexes: list[int] = array(int32)


class ListPartitionReassignmentsRequest(
    Request, api=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, null="0+", default=None
    )


class OngoingPartitionReassignment(Struct):
    partition_index: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)


class OngoingTopicReassignment(Struct):
    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(
    Response, api=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
