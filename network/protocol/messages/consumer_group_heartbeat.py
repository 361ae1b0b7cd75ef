"""ConsumerGroupHeartbeat (68): a member's state and its assignment, in one exchange."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class TopicPartitions(Struct):
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatRequest(
    Request, api=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0", flexible="0+"
):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(null="0+", default=None)
    rack_id: str | None = string(null="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, null="0+", default=None)
    server_assignor: str | None = string(null="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, null="0+", default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupHeartbeatResponse(
    Response, api=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    member_id: str | None = string(null="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, null="0+")
