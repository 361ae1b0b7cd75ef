"""ListGroups: the groups that this broker coordinates.

1  throttle time
2  throttled after the response
3  flexible
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def _error(_request: ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=code)


@handles(ApiKey.LIST_GROUPS, versions=(0, 3), on_error=_error)
def list_groups(
    services: Services, _context: RequestContext, _request: ListGroupsRequest
) -> ListGroupsResponse:
    error, groups = services.groups.groups()
    return ListGroupsResponse(
        error_code=error,
        groups=[
            ListedGroup(group_id=one.group_id, protocol_type=one.protocol_type or "")
            for one in groups
        ],
    )
