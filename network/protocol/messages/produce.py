"""Produce (0): record batches from a producer for the leaders of their partitions."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    batches,
    int16,
    int32,
    int64,
    string,
    struct,
)


class PartitionProduceData(Struct):
    index: int = int32()
    records: bytes | memoryview | None = batches(null="0+")


class TopicProduceData(Struct):
    name: str = string()
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Request, api=ApiKey.PRODUCE, versions="0-11", flexible="9+"):
    transactional_id: str | None = string("3+", null="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", null="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


class PartitionProduceResponse(Struct):
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", null="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = string()
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", null="10+", default=None)


class ProduceResponse(Response, api=ApiKey.PRODUCE, versions="0-11", flexible="9+"):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
