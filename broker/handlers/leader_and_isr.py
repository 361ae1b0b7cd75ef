"""LeaderAndIsr: the controller tells this broker what it leads and follows.

0  ungrouped partitions
1  is_new
2  partitions grouped by topic, broker epoch
3  adding and removing replicas
4  flexible
"""

from collections.abc import Iterator

from broker.dispatch import RequestContext, handles
from broker.services import Services
from broker.turns import Turns
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)


def _error(request: LeaderAndIsrRequest, code: ErrorCode) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(
        error_code=code,
        partition_errors=[
            LeaderAndIsrPartitionError(
                topic_name=topic, partition_index=state.partition_index, error_code=code
            )
            for topic, state in _states(request)
        ],
    )


@handles(ApiKey.LEADER_AND_ISR, versions=(0, 4), on_error=_error)
async def leader_and_isr(
    services: Services, _context: RequestContext | None, request: LeaderAndIsrRequest
) -> LeaderAndIsrResponse:
    code = services.check_controller_request(request.broker_epoch, request.controller_epoch)
    if code != ErrorCode.NONE:
        return _error(request, code)
    await services.topic_configs.load(topic for topic, _ in _states(request))
    response = LeaderAndIsrResponse()
    turns = Turns()
    for topic, state in _states(request):
        code = services.replicas.become_leader_or_follower(topic, state)
        response.partition_errors.append(
            LeaderAndIsrPartitionError(
                topic_name=topic, partition_index=state.partition_index, error_code=code
            )
        )
        await turns.step()
    return response


def _states(request: LeaderAndIsrRequest) -> Iterator[tuple[str, LeaderAndIsrPartitionState]]:
    for state in request.ungrouped_partition_states:
        yield state.topic_name, state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, state
