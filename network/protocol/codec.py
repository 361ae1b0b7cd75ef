"""From frames to messages and back: the functions that the rest of the project calls.

Codecs are compiled when a version of a message is first met, and the module that declares an
API's messages is imported then, so that a broker pays only for what it serves.
"""

from collections.abc import Callable
from importlib import import_module
from struct import error as StructError  # noqa: N812 - an exception, named like one
from typing import Any, TypeVar, cast

from network.protocol.api_keys import ApiKey
from network.protocol.exceptions import EncodeError, ProtocolError, UnsupportedVersionError
from network.protocol.header import (
    RequestHeader,
    read_request_header,
    read_response_header,
    request_head,
    request_header_version,
    response_head,
    response_header_version,
)
from network.protocol.schema import ApiMessage, Message, Request, Response

M = TypeVar("M", bound=Message)

Decode = Callable[[memoryview, int], Any]
Encode = Callable[[Any], list[Any]]

# Compiled codecs by API key and version in one number, see `_key`.
_request_decoders: dict[int, Decode] = {}
_response_decoders: dict[int, Decode] = {}
_request_encoders: dict[int, Encode] = {}
_response_encoders: dict[int, Encode] = {}
_header_versions: dict[int, int] = {}

_DECODE_FAILURES = (ProtocolError, StructError, IndexError, ValueError)
_ENCODE_FAILURES = (StructError, TypeError, AttributeError, UnicodeEncodeError)


def _key(api_key: int, api_version: int) -> int:
    return (api_key << 16) + api_version


# What is declared for an API


def _message_class(api_key: int, side: str) -> type[ApiMessage]:
    try:
        name = ApiKey(api_key).name
    except ValueError:
        raise UnsupportedVersionError(api_key, -1) from None
    module = import_module(f"network.protocol.messages.{name.lower()}")
    camel = "".join(word.capitalize() for word in name.split("_"))
    return cast("type[ApiMessage]", getattr(module, camel + side))


def request_class(api_key: int) -> type[Request]:
    """The class of an API's requests; its VERSIONS are those that can be encoded and decoded."""
    return cast("type[Request]", _message_class(api_key, "Request"))


def response_class(api_key: int) -> type[Response]:
    """The class of an API's responses."""
    return cast("type[Response]", _message_class(api_key, "Response"))


def _checked(message: type[ApiMessage], api_version: int) -> type[ApiMessage]:
    if api_version not in message.VERSIONS:
        raise UnsupportedVersionError(message.API_KEY, api_version)
    return message


# Requests


def decode_request_header(view: memoryview) -> tuple[RequestHeader, int]:
    """Read the header of a frame; returns it with the position at which the body starts.

    A version that no schema covers is not an error here: who answers may want to say so.
    """
    if len(view) < 4:
        raise ProtocolError(f"a request of {len(view)} bytes has no header")
    key = int.from_bytes(view[:4], "big", signed=True)
    version = _header_versions.get(key)
    if version is None:
        version = _learn_header_version(key)
    return read_request_header(view, version)


def _learn_header_version(key: int) -> int:
    api_version = (key & 0xFFFF) - (key << 1 & 0x10000)
    api_key = (key - api_version) >> 16
    flexible = request_class(api_key).FLEXIBLE
    version = request_header_version(api_key, api_version, api_version in flexible)
    if api_version in request_class(api_key).VERSIONS:
        _header_versions[key] = version
    return version


def decode_request(api_key: int, api_version: int, view: memoryview, pos: int) -> Request:
    """Decode the body of a request, which must end where the view ends."""
    decode = _request_decoders.get((api_key << 16) + api_version)
    if decode is None:
        decode = _request_decoder(api_key, api_version)
    try:
        return cast("Request", decode(view, pos))
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
    encode = _request_encoders.get(_key(api_key, api_version))
    if encode is None:
        encode = _request_encoder(api_key, api_version)
    flexible = api_version in message.FLEXIBLE
    version = request_header_version(api_key, api_version, flexible)
    parts = _encoded(encode, message, api_version)
    head = request_head(version, _size(parts), api_key, api_version, (correlation_id, client_id))
    parts[0] = head + parts[0]
    return parts


# Responses


def decode_response(api_key: int, api_version: int, view: memoryview) -> tuple[int, Response]:
    """Decode the frame of a response; returns its correlation id and the message."""
    decode = _response_decoders.get(_key(api_key, api_version))
    if decode is None:
        decode = _response_decoder(api_key, api_version)
    message = response_class(api_key)
    version = response_header_version(api_key, api_version in message.FLEXIBLE)
    correlation_id, pos = read_response_header(view, version)
    try:
        return correlation_id, decode(view, pos)
    except _DECODE_FAILURES as cause:
        raise _undecodable(message, api_version, cause) from cause


def encode_response(
    api_key: int, api_version: int, correlation_id: int, message: Response
) -> list[Any]:
    """The whole frame of a response, as the parts to be sent one after the other."""
    encode = _response_encoders.get((api_key << 16) + api_version)
    if encode is None:
        encode = _response_encoder(api_key, api_version)
    version = response_header_version(api_key, api_version in message.FLEXIBLE)
    parts = _encoded(encode, message, api_version)
    parts[0] = response_head(version, _size(parts), correlation_id) + parts[0]
    return parts


# Messages that stand alone


def decode_message(message: type[M], version: int, view: memoryview, pos: int = 0) -> M:
    """Decode a message without any header."""
    from network.protocol.decoder import compile_decoder

    try:
        return cast("M", compile_decoder(message, version)(view, pos))
    except _DECODE_FAILURES as cause:
        raise _undecodable(message, version, cause) from cause


def encode_message(message: Message, version: int) -> list[Any]:
    """Encode a message without any header."""
    from network.protocol.encoder import compile_encoder

    return _encoded(compile_encoder(type(message), version), message, version)


# Compiling on first use. The compilers are imported only then.


def _request_decoder(api_key: int, api_version: int) -> Decode:
    from network.protocol.decoder import compile_decoder

    message = _checked(request_class(api_key), api_version)
    return _request_decoders.setdefault(
        _key(api_key, api_version), compile_decoder(message, api_version)
    )


def _response_decoder(api_key: int, api_version: int) -> Decode:
    from network.protocol.decoder import compile_decoder

    message = _checked(response_class(api_key), api_version)
    return _response_decoders.setdefault(
        _key(api_key, api_version), compile_decoder(message, api_version)
    )


def _request_encoder(api_key: int, api_version: int) -> Encode:
    from network.protocol.encoder import compile_encoder

    message = _checked(request_class(api_key), api_version)
    return _request_encoders.setdefault(
        _key(api_key, api_version), compile_encoder(message, api_version)
    )


def _response_encoder(api_key: int, api_version: int) -> Encode:
    from network.protocol.encoder import compile_encoder

    message = _checked(response_class(api_key), api_version)
    return _response_encoders.setdefault(
        _key(api_key, api_version), compile_encoder(message, api_version)
    )


def _encoded(encode: Encode, message: Message, version: int) -> list[Any]:
    try:
        return encode(message)
    except _ENCODE_FAILURES as cause:
        name = type(message).__name__
        raise EncodeError(f"{name} v{version} cannot be encoded: {cause}") from cause


def _size(parts: list[Any]) -> int:
    return len(parts[0]) if len(parts) == 1 else sum(map(len, parts))


def _undecodable(message: type[Message], version: int, cause: Exception) -> ProtocolError:
    return ProtocolError(f"{message.__name__} v{version}: {cause}")
