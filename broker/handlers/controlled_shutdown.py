"""ControlledShutdown: a broker that is about to stop asks the controller to find other leaders.

0  without a client id
1  with one
2  broker epoch
3  flexible
"""

from typing import Final

from broker.dispatch import RequestContext, handles
from broker.services import Services
from controller.controlled_shutdown import BrokerNotAvailableError, StaleBrokerEpochError
from controller.metadata_store import ControllerMovedError
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

REFUSALS: Final = {
    ControllerMovedError: ErrorCode.STALE_CONTROLLER_EPOCH,
    StaleBrokerEpochError: ErrorCode.STALE_BROKER_EPOCH,
    BrokerNotAvailableError: ErrorCode.BROKER_NOT_AVAILABLE,
}


def _error(_request: ControlledShutdownRequest, code: ErrorCode) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(error_code=code)


@handles(ApiKey.CONTROLLED_SHUTDOWN, versions=(0, 3), on_error=_error)
async def controlled_shutdown(
    services: Services, _context: RequestContext | None, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    try:
        remaining = await services.controller.controlled_shutdown(
            request.broker_id, request.broker_epoch
        )
    except tuple(REFUSALS) as refusal:
        return _error(request, REFUSALS[type(refusal)])
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=one.topic, partition_index=one.partition)
            for one in sorted(remaining)
        ]
    )
