"""SyncGroup: the leader of a group hands in what it assigned, and every member learns its part.

1  throttle time
2  throttled after the response
3  group instance id
4  flexible
5  protocol type and name, which must be the group's
"""

from broker.deferred import Deferred
from broker.dispatch import RequestContext, handles
from broker.groups.membership import Syncing
from broker.groups.results import SyncResult
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def _error(_request: SyncGroupRequest, code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


@handles(ApiKey.SYNC_GROUP, versions=(0, 5), on_error=_error, is_patient=True)
def sync_group(
    services: Services, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    if request.group_instance_id is not None and not services.groups.settings.knows_static_members:
        return _error(request, ErrorCode.UNSUPPORTED_VERSION)
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return _error(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    syncing = Syncing(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignment={one.member_id: one.assignment for one in request.assignments},
    )
    answer: Deferred[SyncGroupResponse] = Deferred()
    services.groups.sync(syncing, lambda result: answer.resolve(_response(result)))
    return answer


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        assignment=result.assignment,
    )
