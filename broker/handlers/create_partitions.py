"""CreatePartitions: more partitions for topics.

0  topics
1  throttled after the response
2  flexible
"""

from collections import Counter
from collections.abc import Collection

from broker.delayed_metadata import DelayedMetadata
from broker.dispatch import RequestContext, handles
from broker.failures import ApiError
from broker.purgatory import Parked
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def _error(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name=name, error_code=code) for name in names]
    )


@handles(ApiKey.CREATE_PARTITIONS, versions=(0, 2), on_error=_error)
async def create_partitions(
    services: Services, _context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse | Parked[CreatePartitionsResponse]:
    if not services.controller.is_active:
        return _error(request, ErrorCode.NOT_CONTROLLER)
    named = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    extended: dict[str, Collection[int]] = {}
    for topic in request.topics:
        results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
        try:
            if named[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            extended[topic.name] = await _add(services, topic, request.validate_only)
        except ApiError as error:
            results[topic.name].error_code = error.code
            results[topic.name].error_message = error.message

    def answer(timed_out: Collection[str]) -> CreatePartitionsResponse:
        for name in timed_out:
            results[name].error_code = ErrorCode.REQUEST_TIMED_OUT
        return CreatePartitionsResponse(results=list(results.values()))

    if request.validate_only or not extended:
        return answer(())
    if request.timeout_ms <= 0:
        return answer(extended)
    waiting = DelayedMetadata(
        extended, lambda name: services.metadata.has_leaders(name, extended[name]), answer
    )
    return waiting.answer_in_time(services.topics.delayed_operations, extended, request.timeout_ms)


async def _add(
    services: Services, topic: CreatePartitionsTopic, validate_only: bool
) -> Collection[int]:
    picture = services.controller.context
    if picture is not None and picture.is_to_be_deleted(topic.name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
    assignments = None
    if topic.assignments is not None:
        assignments = [one.broker_ids for one in topic.assignments]
    return await services.topics.add_partitions(
        topic.name, topic.count, assignments, validate_only=validate_only
    )
