"""Kafka's wire format, whole: the only place in the project that knows it.

Messages are declared in `messages/<api>.py`; everything else here turns them into bytes and
back. Knows nothing of sockets, topics or handlers.
"""

from network.protocol.api_keys import ApiKey
from network.protocol.codec import (
    decode_message,
    decode_request,
    decode_response,
    encode_message,
    encode_request,
    encode_response,
)
from network.protocol.errors import ErrorCode
from network.protocol.exceptions import EncodeError, ProtocolError, UnsupportedVersionError
from network.protocol.header import RequestHeader, decode_request_header
from network.protocol.registry import request_class, response_class

__all__ = [
    "ApiKey",
    "EncodeError",
    "ErrorCode",
    "ProtocolError",
    "RequestHeader",
    "UnsupportedVersionError",
    "decode_message",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_message",
    "encode_request",
    "encode_response",
    "request_class",
    "response_class",
]
