"""EndTxn (26): a producer commits or aborts its transaction."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, boolean, int16, int32, int64, string


class EndTxnRequest(Request, api=ApiKey.END_TXN, versions="0-4", flexible="3+"):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Response, api=ApiKey.END_TXN, versions="0-4", flexible="3+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
