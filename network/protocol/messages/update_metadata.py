"""UpdateMetadata (6): the controller tells a broker what the cluster looks like."""

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
    int64,
    string,
    uuid,
)


class UpdateMetadataPartitionState(Struct):
    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    zk_version: int = int32()
    replicas: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "4+", ignorable=True)


class UpdateMetadataTopicState(Struct):
    topic_name: str = string("5+")
    topic_id: bytes = uuid("7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, "5+")


class UpdateMetadataEndpoint(Struct):
    port: int = int32("1+")
    host: str = string("1+")
    listener: str = string("3+", ignorable=True)
    security_protocol: int = int16("1+")


class UpdateMetadataBroker(Struct):
    id: int = int32()
    v0_host: str = string("0", ignorable=True)
    v0_port: int = int32("0", ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, "1+", ignorable=True)
    rack: str | None = string("2+", null="0+", ignorable=True)


class UpdateMetadataRequest(Request, api=ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+"):
    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("8+")
    type: int = int8("8+", tag=0)
    controller_epoch: int = int32()
    broker_epoch: int = int64("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(
        UpdateMetadataPartitionState, "0-4"
    )
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, "5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)


class UpdateMetadataResponse(Response, api=ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+"):
    error_code: int = int16()
