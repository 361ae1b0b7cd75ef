"""AlterPartitionReassignments: partitions move to other brokers, or such moves are called off.

0  flexible from the first
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from controller.cluster import TopicPartition
from controller.metadata_store import ControllerMovedError
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def _error(
    _request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=code, error_message=None)


@handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 0), on_error=_error)
async def alter_partition_reassignments(
    services: Services, _context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    targets = {
        TopicPartition(topic.name, one.partition_index): one.replicas
        for topic in request.topics
        for one in topic.partitions
    }
    try:
        verdicts = await services.controller.alter_reassignments(targets)
    except ControllerMovedError:
        return _error(request, ErrorCode.NOT_CONTROLLER)
    by_topic: dict[str, list[ReassignablePartitionResponse]] = {}
    for partition, verdict in verdicts.items():
        by_topic.setdefault(partition.topic, []).append(
            ReassignablePartitionResponse(
                partition_index=partition.partition,
                error_code=verdict.code,
                error_message=verdict.message,
            )
        )
    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
    )
