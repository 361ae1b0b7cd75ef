"""ConsumerGroupDescribe (69): the state and the members of consumer groups."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class ConsumerGroupDescribeRequest(
    Request, api=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0", flexible="0+"
):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class TopicPartitions(Struct):
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    member_id: str = string()
    instance_id: str | None = string(null="0+", default=None)
    rack_id: str | None = string(null="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(null="0+", default=None)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)


class DescribedGroup(Struct):
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


class ConsumerGroupDescribeResponse(
    Response, api=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
