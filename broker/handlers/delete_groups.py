"""DeleteGroups: groups without members are removed with their offsets.

1  throttled after the response
2  flexible
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def _error(request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=one, error_code=code) for one in request.groups_names
        ]
    )


@handles(ApiKey.DELETE_GROUPS, versions=(0, 2), on_error=_error)
def delete_groups(
    services: Services, _context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=one, error_code=services.groups.delete_group(one))
            for one in dict.fromkeys(request.groups_names)
        ]
    )
