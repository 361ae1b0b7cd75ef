"""OffsetDelete: offsets of a group are removed, unless its members still subscribe to the topic."""

from collections import defaultdict

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def _error(_request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)


@handles(ApiKey.OFFSET_DELETE, versions=(0, 0), on_error=_error)
def offset_delete(
    services: Services, _context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    named = [
        (topic.name, one.partition_index) for topic in request.topics for one in topic.partitions
    ]
    known = [one for one in named if services.metadata.has_partition(*one)]
    error, results = services.groups.delete_offsets(request.group_id, known)
    if error != ErrorCode.NONE:
        return _error(request, error)
    by_topic: dict[str, list[OffsetDeleteResponsePartition]] = defaultdict(list)
    for topic, partition in dict.fromkeys(named):
        code = results.get((topic, partition), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        by_topic[topic].append(
            OffsetDeleteResponsePartition(partition_index=partition, error_code=code)
        )
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ]
    )
