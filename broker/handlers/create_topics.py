"""CreateTopics: new topics, by numbers or by explicit assignment.

0  topics
1  validate only; error messages
2  throttle time
3  throttled after the response
4  -1 partitions or replicas stand for the broker's defaults
5  flexible; the new topic's partitions, replicas and settings are returned
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from broker.dispatch import RequestContext, handles
from broker.failures import ApiError
from broker.metadata_cache import MetadataCache
from broker.purgatory import DelayedOperation, Parked
from broker.services import Services
from broker.topic_admin import CreatedTopic, NewTopic
from broker.topic_configs import describe
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
    if services.metadata.controller_id != services.broker_id:
        return _error(request, ErrorCode.NOT_CONTROLLER)
    named = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    created: list[CreatedTopic] = []
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
            created.append(new)
    waiting = DelayedCreation(services.metadata, created, results)
    if request.validate_only or not created:
        return waiting.response()
    return _wait(services, request, waiting)


def _wait(
    services: Services, request: CreateTopicsRequest, waiting: "DelayedCreation"
) -> CreateTopicsResponse | Parked[CreateTopicsResponse]:
    """Answer when the new topics are led; with no time to wait, what was begun has timed out."""
    if request.timeout_ms <= 0:
        return waiting.expired_result()
    response = waiting.try_result()
    if response is not None:
        return response
    return services.topics.delayed_operations.park(
        waiting, waiting.topic_names, request.timeout_ms / 1000
    )


class DelayedCreation(DelayedOperation[CreateTopicsResponse]):
    """Waits until every partition of the new topics has a leader that this broker knows of."""

    def __init__(
        self,
        metadata: MetadataCache,
        created: Sequence[CreatedTopic],
        results: Mapping[str, CreatableTopicResult],
    ) -> None:
        self._metadata = metadata
        self._created = created
        self._results = results

    @property
    def topic_names(self) -> list[str]:
        return [topic.name for topic in self._created]

    def response(self) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=list(self._results.values()))

    def try_result(self) -> CreateTopicsResponse | None:
        return self.response() if all(map(self._is_led, self._created)) else None

    def expired_result(self) -> CreateTopicsResponse:
        timed_out = {
            topic.name: CreatableTopicResult(
                name=topic.name, error_code=ErrorCode.REQUEST_TIMED_OUT
            )
            for topic in self._created
            if not self._is_led(topic)
        }
        return CreateTopicsResponse(topics=list({**self._results, **timed_out}.values()))

    def _is_led(self, topic: CreatedTopic) -> bool:
        return all(self._metadata.has_leader(topic.name, index) for index in topic.assignment)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={one.partition_index: one.broker_ids for one in topic.assignments},
        config={one.name: one.value for one in topic.configs if one.value is not None},
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
