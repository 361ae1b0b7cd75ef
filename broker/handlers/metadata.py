"""Metadata: the live brokers, and who leads which partition.

0  all topics when none are named; unavailable replicas are an error
1  null asks for all topics; controller, racks, internal topics
2  cluster id
3  throttle time
4  auto-creation can be declined
5  offline replicas
6  LISTENER_NOT_FOUND where a leader lacks the listener
7  leader epoch
8  authorized operations
9  flexible
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from broker.dispatch import RequestContext, handles
from broker.metadata_cache import NO_LEADER
from broker.services import Services
from broker.topic_names import is_internal
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from network.protocol.messages.update_metadata import UpdateMetadataPartitionState

FIRST_VERSION_WITH_LISTENER_NOT_FOUND = 6


def _operations(*codes: int) -> int:
    return sum(1 << code for code in codes)


# The operations of Kafka's ACLs, by their codes: read 3, write 4, create 5, delete 6, alter 7,
# describe 8, cluster action 9, describe configs 10, alter configs 11, idempotent write 12.
TOPIC_OPERATIONS = _operations(3, 4, 5, 6, 7, 8, 10, 11)
CLUSTER_OPERATIONS = _operations(5, 7, 8, 9, 10, 11, 12)


def _error(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    topics = [_topic_error(one.name or "", code) for one in request.topics or ()]
    return MetadataResponse(topics=topics)


@handles(ApiKey.METADATA, versions=(0, 9), on_error=_error, is_patient=True)
def metadata(
    services: Services, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    wanted = _wanted_topics(services, context, request)
    missing = [topic for topic in wanted if topic not in services.metadata]
    if missing:
        return _create_missing(services, context, request, missing)
    return _describe(services, context, request, {})


async def _create_missing(
    services: Services, context: RequestContext, request: MetadataRequest, missing: Sequence[str]
) -> MetadataResponse:
    allowed = request.allow_auto_topic_creation
    failed = {one: await services.topics.auto_create(one, allowed=allowed) for one in missing}
    return _describe(services, context, request, failed)


def _describe(
    services: Services,
    context: RequestContext,
    request: MetadataRequest,
    failed: Mapping[str, ErrorCode],
) -> MetadataResponse:
    view = _View(services, context)
    topics = [
        _topic_error(topic, failed[topic]) if topic in failed else view.topic(topic)
        for topic in _wanted_topics(services, context, request)
    ]
    if request.include_topic_authorized_operations:
        for one in topics:
            one.topic_authorized_operations = TOPIC_OPERATIONS
    response = MetadataResponse(
        brokers=view.brokers(),
        cluster_id=services.cluster_id,
        controller_id=services.metadata.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _wanted_topics(
    services: Services, context: RequestContext, request: MetadataRequest
) -> Sequence[str]:
    if request.topics is None or (context.api_version == 0 and not request.topics):
        return services.metadata.topics
    return list(dict.fromkeys(one.name or "" for one in request.topics))


def _topic_error(topic: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=topic, is_internal=is_internal(topic))


class _View:
    """The metadata cache as a client of one listener and one version sees it."""

    def __init__(self, services: Services, context: RequestContext) -> None:
        self._cache = services.metadata
        self._listener = context.listener_name
        self._unavailable_replicas_are_errors = context.api_version == 0
        self._no_endpoint = (
            ErrorCode.LISTENER_NOT_FOUND
            if context.api_version >= FIRST_VERSION_WITH_LISTENER_NOT_FOUND
            else ErrorCode.LEADER_NOT_AVAILABLE
        )

    def brokers(self) -> list[MetadataResponseBroker]:
        return [
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in self._cache.live_nodes(self._listener)
        ]

    def topic(self, topic: str) -> MetadataResponseTopic:
        partitions = self._cache.partitions(topic)
        if partitions is None:
            return _topic_error(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseTopic(
            name=topic,
            is_internal=is_internal(topic),
            partitions=[self._partition(state) for state in partitions.values()],
        )

    def _partition(self, state: UpdateMetadataPartitionState) -> MetadataResponsePartition:
        replicas, isr = self._reachable(state.replicas), self._reachable(state.isr)
        leader, code = state.leader, ErrorCode.NONE
        if self._cache.node(leader, self._listener) is None:
            code = (
                self._no_endpoint
                if leader in self._cache.brokers
                else (ErrorCode.LEADER_NOT_AVAILABLE)
            )
            leader = NO_LEADER
        elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
            code = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=code,
            partition_index=state.partition_index,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=state.offline_replicas,
        )

    def _reachable(self, brokers: list[int]) -> list[int]:
        if not self._unavailable_replicas_are_errors:
            return brokers
        return [one for one in brokers if self._cache.node(one, self._listener) is not None]
