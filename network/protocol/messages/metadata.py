"""Metadata (3): the brokers of the cluster, and the leaders and replicas of topics."""

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
    uuid,
)


class MetadataRequestTopic(Struct):
    topic_id: bytes = uuid("10+", ignorable=True)
    name: str | None = string(null="10+")


class MetadataRequest(Request, api=ApiKey.METADATA, versions="0-12", flexible="9+"):
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, null="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


class MetadataResponseBroker(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", null="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "5+", ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = int16()
    name: str | None = string(null="12+")
    topic_id: bytes = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-2147483648)


class MetadataResponse(Response, api=ApiKey.METADATA, versions="0-12", flexible="9+"):
    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", null="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
