"""From frames to messages and back: the functions that the rest of the project calls.

Codecs are compiled when a version of a message is first met.
"""

from collections.abc import Callable
from functools import cache
from struct import error as StructError  # noqa: N812 - an exception, named like one
from typing import Any, TypeVar, cast

from network.protocol.exceptions import EncodeError, ProtocolError
from network.protocol.header import (
    RESPONSE_HEAD_V0,
    RESPONSE_HEAD_V1,
    decode_response_header,
    request_head,
    response_header_version,
)
from network.protocol.registry import VersionTable, request_class, response_class
from network.protocol.schema import Message, Request, Response

M = TypeVar("M", bound=Message)

Decode = Callable[[memoryview, int], Any]
Encode = Callable[[Any], list[Any]]

_DECODE_FAILURES = (ProtocolError, StructError, IndexError, ValueError)
_ENCODE_FAILURES = (StructError, TypeError, AttributeError, UnicodeEncodeError)


# Compiled codecs


@cache
def _decoder(message: type[Message], version: int) -> Decode:
    from network.protocol.compiler.decoder import compile_decoder  # the first message pays for it

    if version not in message.VERSIONS:
        raise ProtocolError(f"there are only versions {message.VERSIONS}")
    return compile_decoder(message, version)


@cache
def _encoder(message: type[Message], version: int) -> Encode:
    from network.protocol.compiler.encoder import compile_encoder  # the first message pays for it

    if version not in message.VERSIONS:
        raise EncodeError(f"{message.__name__} has only versions {message.VERSIONS}")
    return compile_encoder(message, version)


class RequestDecoders(VersionTable[Callable[[memoryview, int], Request]]):
    """What decodes the bodies of requests."""

    def make(self, api_key: int, api_version: int) -> Callable[[memoryview, int], Request]:
        return _decoder(request_class(api_key, api_version), api_version)


class RequestEncoders(VersionTable[Encode]):
    """What encodes the bodies of requests."""

    def make(self, api_key: int, api_version: int) -> Encode:
        return _encoder(request_class(api_key, api_version), api_version)


class ResponseDecoders(VersionTable[tuple[Decode, int]]):
    """What decodes the bodies of responses, and the version of their headers."""

    def make(self, api_key: int, api_version: int) -> tuple[Decode, int]:
        decode = _decoder(response_class(api_key, api_version), api_version)
        return decode, response_header_version(api_key, api_version)


class ResponseEncoders(VersionTable[tuple[Encode, Callable[[int, int], bytes], int]]):
    """What encodes the bodies of responses and their headers, and the size of a header."""

    def make(
        self, api_key: int, api_version: int
    ) -> tuple[Encode, Callable[[int, int], bytes], int]:
        encode = _encoder(response_class(api_key, api_version), api_version)
        version = response_header_version(api_key, api_version)
        head = RESPONSE_HEAD_V1 if version else RESPONSE_HEAD_V0
        return encode, head.pack, head.size - 4


_request_decoders = RequestDecoders()
_request_encoders = RequestEncoders()
_response_decoders = ResponseDecoders()
_response_encoders = ResponseEncoders()


# Requests


def decode_request(api_key: int, api_version: int, view: memoryview, pos: int) -> Request:
    """Decode the body of a request, which must end where the view ends."""
    decode = _request_decoders[(api_key << 16) + api_version]
    try:
        return decode(view, pos)
    except _DECODE_FAILURES as cause:
        raise _undecodable(request_class(api_key), api_version, cause) from cause


def encode_request(
    api_key: int,
    api_version: int,
    correlation_id: int,
    message: Request,
    client_id: str | None = None,
) -> list[Any]:
    """The whole frame of a request, as the parts to be sent one after the other."""
    encode = _request_encoders[(api_key << 16) + api_version]
    try:
        parts = encode(message)
    except _ENCODE_FAILURES as cause:
        raise _unencodable(message, api_version, cause) from cause
    size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    head = request_head(size, api_key, api_version, correlation_id, client_id)
    parts[0] = head + parts[0]
    return parts


# Responses


def decode_response(api_key: int, api_version: int, view: memoryview) -> tuple[int, Response]:
    """Decode the frame of a response; returns its correlation id and the message."""
    decode, header_version = _response_decoders[(api_key << 16) + api_version]
    correlation_id, pos = decode_response_header(view, header_version)
    try:
        return correlation_id, decode(view, pos)
    except _DECODE_FAILURES as cause:
        raise _undecodable(response_class(api_key), api_version, cause) from cause


def encode_response(
    api_key: int, api_version: int, correlation_id: int, message: Response
) -> list[Any]:
    """The whole frame of a response, as the parts to be sent one after the other."""
    encode, pack_head, head_size = _response_encoders[(api_key << 16) + api_version]
    try:
        parts = encode(message)
        size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        parts[0] = pack_head(size + head_size, correlation_id) + parts[0]
    except _ENCODE_FAILURES as cause:
        raise _unencodable(message, api_version, cause) from cause
    return parts


# Messages that stand alone


def decode_message(message: type[M], version: int, view: memoryview, pos: int = 0) -> M:
    """Decode a message without any header, which must end where the view ends."""
    try:
        return cast("M", _decoder(message, version)(view, pos))
    except _DECODE_FAILURES as cause:
        raise _undecodable(message, version, cause) from cause


def encode_message(message: Message, version: int) -> list[Any]:
    """Encode a message without any header."""
    try:
        return _encoder(type(message), version)(message)
    except _ENCODE_FAILURES as cause:
        raise _unencodable(message, version, cause) from cause


def _undecodable(message: type[Message], version: int, cause: Exception) -> ProtocolError:
    return ProtocolError(f"{message.__name__} v{version}: {cause}")


def _unencodable(message: Message, version: int, cause: Exception) -> EncodeError:
    return EncodeError(f"{type(message).__name__} v{version} cannot be encoded: {cause}")
