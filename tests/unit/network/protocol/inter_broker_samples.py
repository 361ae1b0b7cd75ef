"""One message of each kind that only brokers send each other, with a value of its own per field."""

from collections.abc import Callable

from network.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from network.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from network.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from network.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from network.protocol.schema import ApiMessage

TOPIC_ID = bytes(range(16))


def leader_and_isr_request(version: int) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        topic_name="t",
        partition_index=1,
        controller_epoch=2,
        leader=3,
        leader_epoch=4,
        isr=[5, 6],
        partition_epoch=7,
        replicas=[5, 6, 8],
        adding_replicas=[8],
        removing_replicas=[9],
        is_new=True,
        leader_recovery_state=1 if version >= 6 else 0,
    )
    topic = LeaderAndIsrTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[state])
    return LeaderAndIsrRequest(
        controller_id=10,
        is_k_raft_controller=version >= 7,
        controller_epoch=11,
        broker_epoch=12,
        type=2 if version >= 5 else 0,
        ungrouped_partition_states=[state] if version < 2 else [],
        topic_states=[topic] if version >= 2 else [],
        live_leaders=[LeaderAndIsrLiveLeader(broker_id=13, host_name="h", port=14)],
    )


def leader_and_isr_response(version: int) -> LeaderAndIsrResponse:
    error = LeaderAndIsrPartitionError(topic_name="t", partition_index=1, error_code=2)
    topic = LeaderAndIsrTopicError(topic_id=TOPIC_ID, partition_errors=[error])
    return LeaderAndIsrResponse(
        error_code=3,
        partition_errors=[error] if version < 5 else [],
        topics=[topic] if version >= 5 else [],
    )


def stop_replica_request(version: int) -> StopReplicaRequest:
    partition = StopReplicaPartitionState(partition_index=1, leader_epoch=2, delete_partition=True)
    return StopReplicaRequest(
        controller_id=3,
        is_k_raft_controller=version >= 4,
        controller_epoch=4,
        broker_epoch=5,
        delete_partitions=version <= 2,
        ungrouped_partitions=(
            [StopReplicaPartitionV0(topic_name="t", partition_index=6)] if version == 0 else []
        ),
        topics=(
            [StopReplicaTopicV1(name="t", partition_indexes=[7, 8])] if 1 <= version <= 2 else []
        ),
        topic_states=(
            [StopReplicaTopicState(topic_name="t", partition_states=[partition])]
            if version >= 3
            else []
        ),
    )


def stop_replica_response(version: int) -> StopReplicaResponse:
    error = StopReplicaPartitionError(topic_name="t", partition_index=1, error_code=2)
    return StopReplicaResponse(error_code=3, partition_errors=[error])


def update_metadata_request(version: int) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(
        topic_name="t",
        partition_index=1,
        controller_epoch=2,
        leader=3,
        leader_epoch=4,
        isr=[5, 6],
        zk_version=7,
        replicas=[5, 6, 8],
        offline_replicas=[8],
    )
    topic = UpdateMetadataTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[state])
    endpoint = UpdateMetadataEndpoint(port=9, host="h", listener="L", security_protocol=3)
    broker = UpdateMetadataBroker(id=10, v0_host="v", v0_port=11, endpoints=[endpoint], rack="r")
    return UpdateMetadataRequest(
        controller_id=12,
        is_k_raft_controller=version >= 8,
        type=1 if version >= 8 else 0,
        controller_epoch=13,
        broker_epoch=14,
        ungrouped_partition_states=[state] if version < 5 else [],
        topic_states=[topic] if version >= 5 else [],
        live_brokers=[broker],
    )


def update_metadata_response(version: int) -> UpdateMetadataResponse:
    return UpdateMetadataResponse(error_code=1)


def controlled_shutdown_request(version: int) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=1, broker_epoch=2)


def controlled_shutdown_response(version: int) -> ControlledShutdownResponse:
    remaining = [RemainingPartition(topic_name="t", partition_index=1)]
    return ControlledShutdownResponse(error_code=2, remaining_partitions=remaining)


MAKERS: dict[str, Callable[[int], ApiMessage]] = {
    "LeaderAndIsrRequest": leader_and_isr_request,
    "LeaderAndIsrResponse": leader_and_isr_response,
    "StopReplicaRequest": stop_replica_request,
    "StopReplicaResponse": stop_replica_response,
    "UpdateMetadataRequest": update_metadata_request,
    "UpdateMetadataResponse": update_metadata_response,
    "ControlledShutdownRequest": controlled_shutdown_request,
    "ControlledShutdownResponse": controlled_shutdown_response,
}
