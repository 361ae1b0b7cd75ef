"""LeaveGroup: members leave at once, instead of when their session ends.

1  throttle time
2  throttled after the response
3  several members, by id or instance id, each with its own error
4  flexible
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

FIRST_VERSION_WITH_MEMBERS = 3


def _error(_request: LeaveGroupRequest, code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)


@handles(ApiKey.LEAVE_GROUP, versions=(0, 4), on_error=_error, is_patient=True)
def leave_group(
    services: Services, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse:
    if context.api_version < FIRST_VERSION_WITH_MEMBERS:
        result = services.groups.leave(request.group_id, [(request.member_id, None)])
        return LeaveGroupResponse(error_code=result.error or next(iter(result.members), 0))
    members = [(one.member_id, one.group_instance_id) for one in request.members]
    result = services.groups.leave(request.group_id, members)
    return LeaveGroupResponse(
        error_code=result.error,
        members=[
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
            for (member_id, instance_id), code in zip(members, result.members, strict=False)
        ],
    )
