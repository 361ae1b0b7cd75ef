"""StopReplica (5): the controller takes replicas off a broker."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
)


class StopReplicaPartitionV0(Struct):
    topic_name: str = string("0")
    partition_index: int = int32("0")


class StopReplicaTopicV1(Struct):
    name: str = string("1-2")
    partition_indexes: list[int] = array(int32, "1-2")


class StopReplicaPartitionState(Struct):
    partition_index: int = int32("3+")
    leader_epoch: int = int32("3+", default=-1)
    delete_partition: bool = boolean("3+")


class StopReplicaTopicState(Struct):
    topic_name: str = string("3+")
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState, "3+")


class StopReplicaRequest(Request, api=ApiKey.STOP_REPLICA, versions="0-4", flexible="2+"):
    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("4+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("1+", default=-1, ignorable=True)
    delete_partitions: bool = boolean("0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, "0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, "1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, "3+")


class StopReplicaPartitionError(Struct):
    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()


class StopReplicaResponse(Response, api=ApiKey.STOP_REPLICA, versions="0-4", flexible="2+"):
    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)
