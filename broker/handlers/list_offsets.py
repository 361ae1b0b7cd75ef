"""ListOffsets: the offset for a timestamp, the earliest (-2) or the latest (-1).

0  where segments begin, newest first, as many as asked for
1  one offset with its timestamp
2  isolation level, throttle time
3  throttled after the response
4  leader epochs
5  OFFSET_NOT_AVAILABLE may be returned (LEADER_NOT_AVAILABLE before)
"""

from collections import Counter

from broker.dispatch import RequestContext, handles
from broker.failures import EXPECTED_FAILURES, error_code
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

READ_COMMITTED = 1
FIRST_VERSION_WITH_LEADER_EPOCH = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5


def _error(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_failed(one.partition_index, code) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@handles(ApiKey.LIST_OFFSETS, versions=(0, 5), on_error=_error)
def list_offsets(
    services: Services, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    asked = Counter(
        (topic.name, one.partition_index) for topic in request.topics for one in topic.partitions
    )
    response = ListOffsetsResponse()
    for topic in request.topics:
        answer = ListOffsetsTopicResponse(name=topic.name)
        for one in topic.partitions:
            if asked[topic.name, one.partition_index] > 1 and context.api_version > 0:
                result = _failed(one.partition_index, ErrorCode.INVALID_REQUEST)
            else:
                result = _look_up(services, context, request, topic.name, one)
            answer.partitions.append(result)
        response.topics.append(answer)
    return response


def _look_up(
    services: Services,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    wanted: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    replica_id = request.replica_id
    result = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        partition = services.replicas.readable(topic, wanted.partition_index, replica_id)
        if context.api_version == 0:
            result.old_style_offsets = list(
                partition.offsets_before(
                    wanted.timestamp, wanted.max_num_offsets, replica_id=replica_id
                )
            )
            return result
        partition.check_leader_epoch(wanted.current_leader_epoch)
        found = partition.offset_for_timestamp(
            wanted.timestamp,
            replica_id=replica_id,
            read_committed=request.isolation_level == READ_COMMITTED,
        )
    except EXPECTED_FAILURES as error:
        return _failed(wanted.partition_index, _code_for_version(error, context.api_version))
    if found is not None:
        result.timestamp = found.timestamp
        result.offset = found.offset
        if context.api_version >= FIRST_VERSION_WITH_LEADER_EPOCH:
            result.leader_epoch = found.leader_epoch
    return result


def _code_for_version(error: Exception, api_version: int) -> ErrorCode:
    code = error_code(error)
    is_new_to_client = api_version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    if code == ErrorCode.OFFSET_NOT_AVAILABLE and is_new_to_client:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code


def _failed(partition: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition, error_code=code)
