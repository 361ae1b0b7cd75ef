"""ExpireDelegationToken (40): an earlier expiry for a token."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, binary, int16, int32, int64


class ExpireDelegationTokenRequest(
    Request, api=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+"
):
    hmac: bytes = binary()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(
    Response, api=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+"
):
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
