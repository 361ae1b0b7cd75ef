"""OffsetForLeaderEpoch: where a leader epoch ends, so that others find where histories part.

0  the end offset of an epoch
1  the epoch that was found
2  current leader epoch, throttle time
3  the replica that asks; consumers ask too
"""

from broker.dispatch import RequestContext, handles
from broker.failures import EXPECTED_FAILURES, error_code
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def _error(request: OffsetForLeaderEpochRequest, code: ErrorCode) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=one.partition, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(0, 3), on_error=_error)
def offset_for_leader_epoch(
    services: Services, _context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_look_up(services, topic.topic, one) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _look_up(services: Services, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    result = EpochEndOffset(partition=wanted.partition)
    try:
        partition = services.replicas.held(topic, wanted.partition)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        found = partition.end_of_epoch(wanted.leader_epoch)
    except EXPECTED_FAILURES as error:
        result.error_code = error_code(error)
    else:
        result.leader_epoch, result.end_offset = found
    return result
