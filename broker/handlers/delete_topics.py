"""DeleteTopics: topics go, with their logs and settings.

0  topics by name
1  throttle time
2  throttled after the response
3  TOPIC_DELETION_DISABLED may be returned (INVALID_REQUEST before)
4  flexible
"""

from collections.abc import Collection, Mapping

from broker.delayed_metadata import DelayedMetadata
from broker.dispatch import RequestContext, handles
from broker.failures import ApiError
from broker.purgatory import Parked
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

FIRST_VERSION_WITH_DELETION_DISABLED = 3


def _error(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    return _response(request, dict.fromkeys(request.topic_names, code))


@handles(ApiKey.DELETE_TOPICS, versions=(0, 4), on_error=_error)
async def delete_topics(
    services: Services, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | Parked[DeleteTopicsResponse]:
    if not services.controller.is_active:
        return _error(request, ErrorCode.NOT_CONTROLLER)
    if not services.settings.delete_topic_enable:
        is_known = context.api_version >= FIRST_VERSION_WITH_DELETION_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        return _error(request, code)
    codes = {name: await _begin(services, name) for name in dict.fromkeys(request.topic_names)}
    begun = [name for name, code in codes.items() if code == ErrorCode.NONE]

    def answer(timed_out: Collection[str]) -> DeleteTopicsResponse:
        return _response(request, codes | dict.fromkeys(timed_out, ErrorCode.REQUEST_TIMED_OUT))

    if request.timeout_ms <= 0 or not begun:
        return answer(begun)
    deletion = DelayedMetadata(begun, lambda name: name not in services.metadata, answer)
    return deletion.answer_in_time(services.topics.delayed_operations, begun, request.timeout_ms)


async def _begin(services: Services, topic: str) -> ErrorCode:
    if topic not in services.metadata:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        await services.topics.delete(topic)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def _response(request: DeleteTopicsRequest, codes: Mapping[str, ErrorCode]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=name, error_code=codes[name]) for name in request.topic_names
        ]
    )
