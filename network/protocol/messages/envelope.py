"""Envelope (58): a request that one broker forwards to another in the name of its client."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, binary, int16


class EnvelopeRequest(Request, api=ApiKey.ENVELOPE, versions="0", flexible="0+"):
    request_data: bytes = binary()
    request_principal: bytes | None = binary(null="0+")
    client_host_address: bytes = binary()


class EnvelopeResponse(Response, api=ApiKey.ENVELOPE, versions="0", flexible="0+"):
    response_data: bytes | None = binary(null="0+", default=None)
    error_code: int = int16()
