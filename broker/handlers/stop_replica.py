"""StopReplica: the controller takes replicas away from this broker.

0  ungrouped partitions
1  partitions grouped by topic, broker epoch
2  flexible
"""

from collections.abc import Iterator

from broker.dispatch import RequestContext, handles
from broker.services import Services
from broker.turns import Turns
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)


def _error(_request: StopReplicaRequest, code: ErrorCode) -> StopReplicaResponse:
    return StopReplicaResponse(error_code=code)


@handles(ApiKey.STOP_REPLICA, versions=(0, 2), on_error=_error)
async def stop_replica(
    services: Services, _context: RequestContext | None, request: StopReplicaRequest
) -> StopReplicaResponse:
    code = services.check_controller_request(request.broker_epoch, request.controller_epoch)
    if code != ErrorCode.NONE:
        return _error(request, code)
    response = StopReplicaResponse()
    turns = Turns()
    for topic, index in _partitions(request):
        code = services.replicas.stop(topic, index, delete=request.delete_partitions)
        response.partition_errors.append(
            StopReplicaPartitionError(topic_name=topic, partition_index=index, error_code=code)
        )
        await turns.step()
    left = {topic for topic, _ in services.replicas.partitions}
    for topic in {topic for topic, _ in _partitions(request)} - left:
        services.topic_configs.forget(topic)
    return response


def _partitions(request: StopReplicaRequest) -> Iterator[tuple[str, int]]:
    for one in request.ungrouped_partitions:
        yield one.topic_name, one.partition_index
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield topic.name, index
