"""Whole frames for tests: the parts that encoding gives, joined, and read again."""

from typing import Any

from network.protocol import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from network.protocol.schema import ApiMessage, Request, Response

CLIENT_ID = "tester"
CORRELATION_ID = 1_234_567


def encode_frame(message: ApiMessage, version: int) -> bytes:
    """The frame of a message as it goes over the wire, size included."""
    return b"".join(encode_parts(message, version))


def encode_parts(message: ApiMessage, version: int) -> list[Any]:
    if isinstance(message, Request):
        return encode_request(message.API_KEY, version, CORRELATION_ID, message, CLIENT_ID)
    assert isinstance(message, Response)
    return encode_response(message.API_KEY, version, CORRELATION_ID, message)


def decode_frame(message: type[ApiMessage], version: int, frame: memoryview) -> ApiMessage:
    """Read a frame without its size, as a broker does or as its client does."""
    if issubclass(message, Request):
        header, pos = decode_request_header(frame)
        return decode_request(header.api_key, header.api_version, frame, pos)
    _, response = decode_response(message.API_KEY, version, frame)
    return response


def body_position(message: type[ApiMessage], version: int, frame: memoryview) -> int:
    """Where the body of a frame without its size begins."""
    if issubclass(message, Request):
        return decode_request_header(frame)[1]
    flexible_header = version in message.FLEXIBLE and message.__name__ != "ApiVersionsResponse"
    return 5 if flexible_header else 4
