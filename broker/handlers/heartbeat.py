"""Heartbeat: a member of a group shows that it is alive, and hears of rebalances.

1  throttle time
2  throttled after the response
3  group instance id
4  flexible
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def _error(_request: HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


@handles(ApiKey.HEARTBEAT, versions=(0, 4), on_error=_error)
def heartbeat(
    services: Services, _context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse:
    if request.group_instance_id is not None and not services.groups.settings.knows_static_members:
        return _error(request, ErrorCode.UNSUPPORTED_VERSION)
    code = services.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=code)
