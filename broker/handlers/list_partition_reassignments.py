"""ListPartitionReassignments: the moves to other brokers that are under way.

0  flexible from the first
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from controller.cluster import TopicPartition
from controller.metadata_store import ControllerMovedError
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def _error(
    _request: ListPartitionReassignmentsRequest, code: ErrorCode
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=code, error_message=None)


@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=(0, 0), on_error=_error)
async def list_partition_reassignments(
    services: Services, _context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    asked = None
    if request.topics is not None:
        asked = [
            TopicPartition(topic.name, index)
            for topic in request.topics
            for index in topic.partition_indexes
        ]
    try:
        ongoing = await services.controller.list_reassignments(asked)
    except ControllerMovedError:
        return _error(request, ErrorCode.NOT_CONTROLLER)
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for partition, assignment in ongoing.items():
        by_topic.setdefault(partition.topic, []).append(
            OngoingPartitionReassignment(
                partition_index=partition.partition,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
    )
