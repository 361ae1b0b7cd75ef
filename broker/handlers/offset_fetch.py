"""OffsetFetch: how far a group has read.

0  from ZooKeeper
1  from `__consumer_offsets`
2  null asks for all partitions; errors that concern the group stand above the partitions
3  throttle time
4  throttled after the response
5  leader epochs
6  flexible
7  offsets that a commit may yet replace can be declined
"""

from collections import defaultdict
from collections.abc import Coroutine, Mapping
from typing import Any

from broker.dispatch import RequestContext, handles
from broker.groups.offsets import CommittedOffset, TopicPartition
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

FIRST_VERSION_WITH_GROUP_ERROR = 2
NO_OFFSET = -1

Offset = CommittedOffset | ErrorCode | None


def _error(request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    response = _response(dict.fromkeys(_partitions(request) or (), code))
    response.error_code = code
    return response


@handles(ApiKey.OFFSET_FETCH, versions=(0, 7), on_error=_error, is_patient=True)
def offset_fetch(
    services: Services, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    if context.api_version == 0:
        return _fetch_from_zookeeper(services, request)
    error, offsets = services.groups.fetch(
        request.group_id, _partitions(request), require_stable=request.require_stable
    )
    if error == ErrorCode.NONE:
        return _response(offsets)
    if context.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        return _error(request, error)
    return OffsetFetchResponse(error_code=error)


async def _fetch_from_zookeeper(
    services: Services, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    found: dict[TopicPartition, Offset] = {}
    for partition in _partitions(request) or ():
        if services.metadata.has_partition(*partition):
            found[partition] = await services.old_offsets.fetch(request.group_id, partition)
        else:
            found[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _response(found)


def _partitions(request: OffsetFetchRequest) -> list[TopicPartition] | None:
    if request.topics is None:
        return None
    return [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]


def _response(offsets: Mapping[TopicPartition, Offset]) -> OffsetFetchResponse:
    by_topic: dict[str, list[OffsetFetchResponsePartition]] = defaultdict(list)
    for (topic, index), offset in offsets.items():
        by_topic[topic].append(_partition(index, offset))
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ]
    )


def _partition(index: int, offset: Offset) -> OffsetFetchResponsePartition:
    if isinstance(offset, CommittedOffset):
        return OffsetFetchResponsePartition(
            partition_index=index,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=NO_OFFSET,
        metadata="",
        error_code=ErrorCode.NONE if offset is None else offset,
    )
