"""InitProducerId: an id and an epoch for an idempotent or transactional producer.

0  transactional id
1  throttled after the response
2  flexible
3  the producer's present id and epoch, which it wants the epoch of bumped

There is no transaction coordinator yet: only producers without a transactional id are served.
"""

import logging

from broker.dispatch import RequestContext, handles
from broker.services import Services
from controller.metadata_store import ProducerIdsExhaustedError
from controller.zookeeper import ZooKeeperError
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

logger = logging.getLogger(__name__)

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
FIRST_EPOCH = 0


def _error(_request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


@handles(ApiKey.INIT_PRODUCER_ID, versions=(0, 3), on_error=_error)
async def init_producer_id(
    services: Services, _context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch or request.transactional_id == "":
        return _error(request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _error(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        producer_id = await services.producer_ids.next()
    except ProducerIdsExhaustedError as error:
        logger.critical("%s", error)
        return _error(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    except ZooKeeperError as error:
        # The one code that makes an idempotent producer ask again.
        logger.warning("No producer ids can be acquired: %s", error)
        return _error(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)
