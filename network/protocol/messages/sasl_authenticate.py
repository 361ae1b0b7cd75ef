"""SaslAuthenticate (36): one step of a SASL mechanism's exchange."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, binary, int16, int64, string


class SaslAuthenticateRequest(Request, api=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"):
    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(
    Response, api=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"
):
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64("1+", ignorable=True)
