"""JoinGroup: a member enters a group, or says that it is still there, and learns its generation.

0  session timeout only
1  rebalance timeout
2  throttle time
3  throttled after the response
4  MEMBER_ID_REQUIRED: an id is handed out first
5  group instance id
6  flexible
7  protocol type in the response, whose protocol may be null
"""

from broker.deferred import Deferred
from broker.dispatch import RequestContext, handles
from broker.groups.membership import Joining
from broker.groups.results import NO_GENERATION, NO_MEMBER_ID, JoinResult
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_THAT_NEEDS_AN_ID = 4
FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def _error(_request: JoinGroupRequest, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        generation_id=NO_GENERATION,
        protocol_name="",
        leader=NO_MEMBER_ID,
        member_id=NO_MEMBER_ID,
    )


@handles(ApiKey.JOIN_GROUP, versions=(0, 7), on_error=_error, is_patient=True)
def join_group(
    services: Services, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    version = context.api_version
    if request.group_instance_id is not None and not services.groups.settings.knows_static_members:
        return _response(JoinResult(NO_MEMBER_ID, ErrorCode.UNSUPPORTED_VERSION), version)
    answer: Deferred[JoinGroupResponse] = Deferred()
    services.groups.join(
        _joining(context, request), lambda result: answer.resolve(_response(result, version))
    )
    return answer


def _joining(context: RequestContext, request: JoinGroupRequest) -> Joining:
    version = context.api_version
    has_rebalance_timeout = version >= FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    protocols = {one.name: one.metadata for one in request.protocols}
    return Joining(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=context.client_id,
        client_host=f"/{context.request.channel.peer_host}",
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms
        ),
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=list(protocols.items()),
        needs_known_id=(
            version >= FIRST_VERSION_THAT_NEEDS_AN_ID and request.group_instance_id is None
        ),
    )


def _response(result: JoinResult, version: int) -> JoinGroupResponse:
    protocol = result.protocol
    if protocol is None and version < FIRST_VERSION_WITH_NULL_PROTOCOL:
        protocol = ""
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=protocol,
        leader=result.leader_id or NO_MEMBER_ID,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ],
    )
