"""DescribeGroups: the state and the members of groups.

1  throttle time
2  throttled after the response
3  authorized operations
4  group instance ids
5  flexible
"""

from broker.dispatch import RequestContext, handles
from broker.groups.group import Group
from broker.groups.states import DEAD, STABLE
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

# By the codes of Kafka's ACLs: read 3, delete 6, describe 8.
GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8


def _error(request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_failed(one, code) for one in request.groups])


@handles(ApiKey.DESCRIBE_GROUPS, versions=(0, 5), on_error=_error, is_patient=True)
def describe_groups(
    services: Services, _context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    response = DescribeGroupsResponse()
    for group_id in request.groups:
        error, group = services.groups.describe(group_id)
        if error != ErrorCode.NONE:
            described = _failed(group_id, error)
        elif group is None:
            described = DescribedGroup(group_id=group_id, group_state=DEAD.value)
        else:
            described = _described(group)
        if request.include_authorized_operations and error == ErrorCode.NONE:
            described.authorized_operations = GROUP_OPERATIONS
        response.groups.append(described)
    return response


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(error_code=code, group_id=group_id)


def _described(group: Group) -> DescribedGroup:
    """Only a stable group has a protocol, metadata and assignments to show."""
    protocol = group.protocol if group.state is STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=b"" if protocol is None else member.assignment,
            )
            for member in group.members.values()
        ],
    )
