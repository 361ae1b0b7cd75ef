"""DeleteTopics: topics go, with their logs and settings.

0  topics by name
1  throttle time
2  throttled after the response
3  TOPIC_DELETION_DISABLED may be returned (INVALID_REQUEST before)
4  flexible
"""

from collections.abc import Sequence

from broker.dispatch import RequestContext, handles
from broker.metadata_cache import MetadataCache
from broker.purgatory import DelayedOperation, Parked
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

FIRST_VERSION_WITH_DELETION_DISABLED = 3


def _error(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(name=name, error_code=code) for name in request.topic_names]
    )


@handles(ApiKey.DELETE_TOPICS, versions=(0, 4), on_error=_error)
async def delete_topics(
    services: Services, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | Parked[DeleteTopicsResponse]:
    if services.metadata.controller_id != services.broker_id:
        return _error(request, ErrorCode.NOT_CONTROLLER)
    if not services.settings.delete_topic_enable:
        is_known = context.api_version >= FIRST_VERSION_WITH_DELETION_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        return _error(request, code)
    known = [name for name in request.topic_names if name in services.metadata]
    for name in known:
        await services.topics.delete(name)
    deletion = DelayedDeletion(services.metadata, request.topic_names, known)
    if not known:
        return deletion.expired_result()
    response = deletion.try_result()
    if response is not None or request.timeout_ms <= 0:
        return response or deletion.expired_result()
    return services.topics.delayed_operations.park(deletion, known, request.timeout_ms / 1000)


class DelayedDeletion(DelayedOperation[DeleteTopicsResponse]):
    """Waits until this broker knows no more of the topics."""

    def __init__(
        self, metadata: MetadataCache, asked: Sequence[str], deleted: Sequence[str]
    ) -> None:
        self._metadata = metadata
        self._asked = asked
        self._deleted = deleted

    def try_result(self) -> DeleteTopicsResponse | None:
        if any(name in self._metadata for name in self._deleted):
            return None
        return self.expired_result()

    def expired_result(self) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(name=name, error_code=self._code(name))
                for name in dict.fromkeys(self._asked)
            ]
        )

    def _code(self, name: str) -> ErrorCode:
        if name not in self._deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.REQUEST_TIMED_OUT if name in self._metadata else ErrorCode.NONE
