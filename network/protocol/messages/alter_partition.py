"""AlterPartition (56): a leader tells the controller its in-sync replicas."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class BrokerState(Struct):
    broker_id: int = int32("3+")
    broker_epoch: int = int64("3+", default=-1)


class RequestPartitionData(Struct):
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32()


class RequestTopicData(Struct):
    topic_name: str = string("0-1", ignorable=True)
    topic_id: bytes = uuid("2+", ignorable=True)
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


class AlterPartitionRequest(Request, api=ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[RequestTopicData] = array(RequestTopicData)


class ResponsePartitionData(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8("1+", ignorable=True)
    partition_epoch: int = int32()


class ResponseTopicData(Struct):
    topic_name: str = string("0-1", ignorable=True)
    topic_id: bytes = uuid("2+", ignorable=True)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


class AlterPartitionResponse(Response, api=ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[ResponseTopicData] = array(ResponseTopicData)
