"""DeleteRecords: the records before an offset go; -1 stands for all that are committed.

0  topics
1  throttled after the response
"""

from broker.delayed_delete_records import DelayedDeleteRecords, WaitingDeletion
from broker.dispatch import RequestContext, handles
from broker.failures import EXPECTED_FAILURES, ApiError, error_code
from broker.purgatory import Parked
from broker.services import Services
from broker.topic_names import is_internal
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

NO_LOW_WATERMARK = -1


def _error(request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(one.partition_index, code) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@handles(ApiKey.DELETE_RECORDS, versions=(0, 1), on_error=_error)
def delete_records(
    services: Services, _context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Parked[DeleteRecordsResponse]:
    response = DeleteRecordsResponse()
    waiting: list[WaitingDeletion] = []
    for topic in request.topics:
        answer = DeleteRecordsTopicResult(name=topic.name)
        for one in topic.partitions:
            answer.partitions.append(_delete(services, topic.name, one, waiting))
        response.topics.append(answer)
    delayed = DelayedDeleteRecords(services.metadata, response, waiting)
    if delayed.try_result() is not None:
        return response
    keys = [one.partition.key for one in waiting]
    timeout_seconds = max(request.timeout_ms, 0) / 1000
    return services.replicas.delayed_deletions.park(delayed, keys, timeout_seconds)


def _delete(
    services: Services,
    topic: str,
    wanted: DeleteRecordsPartition,
    waiting: list[WaitingDeletion],
) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        if not services.metadata.has_partition(topic, index):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if is_internal(topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = services.replicas.held(topic, index)
        before = partition.delete_records(wanted.offset)
    except EXPECTED_FAILURES as error:
        return _failed(index, error_code(error))
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_LOW_WATERMARK)
    waiting.append(WaitingDeletion(partition, before, result))
    return result


def _failed(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=code
    )
