"""SaslHandshake (17): the choice of a SASL mechanism."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, array, int16, string


class SaslHandshakeRequest(Request, api=ApiKey.SASL_HANDSHAKE, versions="0-1"):
    mechanism: str = string()


class SaslHandshakeResponse(Response, api=ApiKey.SASL_HANDSHAKE, versions="0-1"):
    error_code: int = int16()
    mechanisms: list[str] = array(string)
