"""FindCoordinator: which broker looks after a group or a transactional id.

    0  groups only
    1  key type: 0 group, 1 transaction
    2  throttled after the response
    3  flexible

There are no coordinators yet: every question is answered COORDINATOR_NOT_AVAILABLE, which clients
take as "ask again".
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

NO_NODE = -1
KEY_TYPES = (0, 1)


def _error(_request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(error_code=code, node_id=NO_NODE, host="", port=NO_NODE)


@handles(ApiKey.FIND_COORDINATOR, versions=(0, 3), on_error=_error)
def find_coordinator(
    _services: Services, _context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if request.key_type not in KEY_TYPES:
        return _error(request, ErrorCode.INVALID_REQUEST)
    return _error(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
