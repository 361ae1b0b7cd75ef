"""FindCoordinator: which broker looks after a group or a transactional id.

    0  groups only
    1  key type: 0 group, 1 transaction; error message
    2  throttled after the response
    3  flexible

There are no transactions yet: for them every answer is COORDINATOR_NOT_AVAILABLE, which clients
take as "ask again".
"""

from collections.abc import Coroutine
from typing import Any

from broker.dispatch import RequestContext, handles
from broker.services import Services
from broker.topic_names import GROUP_METADATA_TOPIC
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

NO_NODE = -1
GROUP = 0
KEY_TYPES = (GROUP, 1)


def _error(_request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(error_code=code, node_id=NO_NODE, host="", port=NO_NODE)


@handles(ApiKey.FIND_COORDINATOR, versions=(0, 3), on_error=_error)
def find_coordinator(
    services: Services, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    if request.key_type not in KEY_TYPES:
        return _error(request, ErrorCode.INVALID_REQUEST)
    if request.key_type != GROUP:
        return _error(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partitions = services.metadata.partitions(GROUP_METADATA_TOPIC)
    if partitions is None:
        return _create_topic(services, request)
    state = partitions.get(services.groups.registry.partition_for(request.key))
    node = None if state is None else services.metadata.node(state.leader, context.listener_name)
    if node is None:
        return _error(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(node_id=node.id, host=node.host, port=node.port)


async def _create_topic(
    services: Services, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """The first group of a cluster has to ask again: its topic has no leaders yet."""
    await services.topics.create_internal(GROUP_METADATA_TOPIC)
    return _error(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
