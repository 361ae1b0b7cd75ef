"""AddOffsetsToTxn (25): a group's offsets become part of a transaction."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, api=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(
    Response, api=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
