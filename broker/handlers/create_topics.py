"""CreateTopics: new topics, by numbers or by explicit assignment.

0  topics
1  validate only; error messages
2  throttle time
3  throttled after the response
4  -1 partitions or replicas stand for the broker's defaults
5  flexible; the new topic's partitions, replicas and settings are returned
"""

from collections import Counter
from collections.abc import Collection

from broker.delayed_metadata import DelayedMetadata
from broker.dispatch import RequestContext, handles
from broker.failures import ApiError
from broker.purgatory import Parked
from broker.services import Services
from broker.topic_admin import CreatedTopic
from broker.topic_configs import describe
from broker.wanted_topics import NewTopic
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def _error(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=topic.name, error_code=code) for topic in request.topics]
    )


@handles(ApiKey.CREATE_TOPICS, versions=(0, 5), on_error=_error)
async def create_topics(
    services: Services, _context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse | Parked[CreateTopicsResponse]:
    if not services.controller.is_active:
        return _error(request, ErrorCode.NOT_CONTROLLER)
    named = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    created: dict[str, Collection[int]] = {}
    for topic in request.topics:
        try:
            if named[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
            new = await services.topics.create(
                _new_topic(topic), validate_only=request.validate_only
            )
        except ApiError as error:
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
        else:
            results[topic.name] = _created(services, new)
            created[new.name] = new.assignment

    def answer(timed_out: Collection[str]) -> CreateTopicsResponse:
        late = {
            name: CreatableTopicResult(name=name, error_code=ErrorCode.REQUEST_TIMED_OUT)
            for name in timed_out
        }
        return CreateTopicsResponse(
            topics=[(results | late)[topic.name] for topic in request.topics]
        )

    if request.validate_only or not created:
        return answer(())
    if request.timeout_ms <= 0:
        return answer(created)
    waiting = DelayedMetadata(
        created, lambda name: services.metadata.has_leaders(name, created[name]), answer
    )
    return waiting.answer_in_time(services.topics.delayed_operations, created, request.timeout_ms)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={one.partition_index: one.broker_ids for one in topic.assignments},
        config={one.name: one.value for one in topic.configs},
    )


def _created(services: Services, topic: CreatedTopic) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        num_partitions=len(topic.assignment),
        replication_factor=len(topic.assignment[0]),
        configs=[
            CreatableTopicConfigs(
                name=one.name,
                value=one.value,
                read_only=False,
                config_source=one.source,
                is_sensitive=False,
            )
            for one in describe(services.settings, topic.settings)
        ],
    )
