"""InitProducerId (22): the id and epoch of an idempotent or transactional producer."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, int16, int32, int64, string


class InitProducerIdRequest(Request, api=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    transactional_id: str | None = string(null="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)


class InitProducerIdResponse(Response, api=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
