"""AllocateProducerIds (67): a block of producer ids for a broker."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, int16, int32, int64


class AllocateProducerIdsRequest(
    Request, api=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"
):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(
    Response, api=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
