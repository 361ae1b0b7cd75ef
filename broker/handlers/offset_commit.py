"""OffsetCommit: a group stores how far it has read.

0  in ZooKeeper
1  in `__consumer_offsets`; generation, member, commit timestamp of each partition
2  retention time instead of timestamps
3  throttle time
4  throttled after the response
5  no retention time
6  leader epochs
7  group instance id
8  flexible
"""

from collections.abc import Coroutine
from typing import Any

from broker.deferred import Deferred
from broker.dispatch import RequestContext, handles
from broker.groups.commits import CommitResult, Committing
from broker.groups.offsets import CommittedOffset
from broker.groups.record_formats import NO_TIMESTAMP
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

NO_RETENTION_TIME = -1


def _error(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    return _response(request, {}, code)


@handles(ApiKey.OFFSET_COMMIT, versions=(0, 8), on_error=_error)
def offset_commit(
    services: Services, context: RequestContext, request: OffsetCommitRequest
) -> (
    OffsetCommitResponse
    | Deferred[OffsetCommitResponse]
    | Coroutine[Any, Any, OffsetCommitResponse]
):
    if request.group_instance_id is not None and not services.groups.settings.knows_static_members:
        return _error(request, ErrorCode.UNSUPPORTED_VERSION)
    known = {
        (topic.name, one.partition_index): one
        for topic in request.topics
        for one in topic.partitions
        if services.metadata.has_partition(topic.name, one.partition_index)
    }
    if not known:
        return _response(request, {})
    if context.api_version == 0:
        return _commit_to_zookeeper(services, request, known)
    now = services.groups.now_ms()
    committing = Committing(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        offsets={
            partition: _committed(one, request.retention_time_ms, now)
            for partition, one in known.items()
        },
    )
    answer: Deferred[OffsetCommitResponse] = Deferred()
    services.groups.commit(committing, lambda results: answer.resolve(_response(request, results)))
    return answer


def _committed(
    one: OffsetCommitRequestPartition, retention_time_ms: int, now: int
) -> CommittedOffset:
    has_timestamp = one.commit_timestamp != NO_TIMESTAMP
    has_retention = retention_time_ms != NO_RETENTION_TIME
    return CommittedOffset(
        one.committed_offset,
        one.committed_metadata or "",
        one.committed_leader_epoch,
        one.commit_timestamp if has_timestamp else now,
        now + retention_time_ms if has_retention else NO_TIMESTAMP,
    )


async def _commit_to_zookeeper(
    services: Services,
    request: OffsetCommitRequest,
    known: dict[tuple[str, int], OffsetCommitRequestPartition],
) -> OffsetCommitResponse:
    results = {
        partition: await services.old_offsets.commit(
            request.group_id, partition, one.committed_offset, one.committed_metadata
        )
        for partition, one in known.items()
    }
    return _response(request, results)


def _response(
    request: OffsetCommitRequest,
    results: CommitResult,
    default: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=results.get((topic.name, one.partition_index), default),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
