"""Headers of requests and responses: what stands in a frame before the message.

Knows which header version goes with which version of an API, and nothing of the messages.
"""

from struct import Struct as Layout
from struct import error as StructError  # noqa: N812 - an exception, named like one

from network.protocol.api_keys import ApiKey
from network.protocol.exceptions import EncodeError, ProtocolError
from network.protocol.primitives import skip_tagged_fields
from network.protocol.schema import Struct, int16, int32, string

# Request header, versions 0 to 2:
#
#   | size i32 | api_key i16 | api_version i16 | correlation_id i32 |               0
#                                   | client_id length i16 | client_id bytes |      1 adds
#                                                          | tagged fields |      2 adds
#
# The client id keeps its two-byte length in version 2, so that a broker can read the header
# of a request whose version it does not know. The size counts what follows it.
REQUEST_FIXED = Layout(">hhih")
REQUEST_HEAD_V0 = Layout(">ihhi")
REQUEST_HEAD_V1 = Layout(">ihhih")

# Response header, versions 0 and 1:
#
#   | size i32 | correlation_id i32 |                                 0
#                                   | tagged fields |               1 adds
RESPONSE_HEAD_V0 = Layout(">ii")
RESPONSE_HEAD_V1 = Layout(">iix")
CORRELATION_ID = Layout(">i")

_read_fixed = REQUEST_FIXED.unpack_from
_new = object.__new__


class RequestHeader(Struct):
    """Who asks for what; `api_key` is a plain integer that compares equal to its `ApiKey`."""

    api_key: int = int16()
    api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string("1+", null="1+", default=None)


def request_header_version(api_key: int, api_version: int, flexible: bool) -> int:
    """The header version of a request; `flexible` is whether that version's body is."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    return 2 if flexible else 1


def response_header_version(api_key: int, flexible: bool) -> int:
    """The header version of a response.

    That of ApiVersions is always 0: the client cannot know yet what the broker understands.
    """
    return 1 if flexible and api_key != ApiKey.API_VERSIONS else 0


def read_request_header(view: memoryview, version: int) -> tuple[RequestHeader, int]:
    """Read a header of a known version; returns it with the position of the body."""
    header: RequestHeader = _new(RequestHeader)
    try:
        header.api_key, header.api_version, header.correlation_id, length = _read_fixed(view, 0)
        if version == 0 or length < 0:
            header.client_id = None
            pos = 10 if version else 8
        else:
            pos = 10 + length
            header.client_id = str(view[10:pos], "utf-8")
        if version == 2:
            tags = view[pos]
            pos += 1
            if tags:
                pos = skip_tagged_fields(tags, view, pos)
    except (StructError, IndexError, UnicodeDecodeError) as cause:
        raise ProtocolError(f"request header: {cause}") from cause
    if pos > len(view):
        raise ProtocolError("request header: the frame ends within it")
    return header, pos


def read_response_header(view: memoryview, version: int) -> tuple[int, int]:
    """Read a header of a known version; returns the correlation id and the body's position."""
    try:
        (correlation_id,) = CORRELATION_ID.unpack_from(view, 0)
        if version == 0:
            return correlation_id, 4
        tags = view[4]
        return correlation_id, skip_tagged_fields(tags, view, 5) if tags else 5
    except (StructError, IndexError) as cause:
        raise ProtocolError(f"response header: {cause}") from cause


def request_head(
    version: int, body_size: int, api_key: int, api_version: int, header: tuple[int, str | None]
) -> bytes:
    """The size of the frame and the request header, for a body of `body_size` bytes."""
    correlation_id, client_id = header
    if version == 0:
        return REQUEST_HEAD_V0.pack(body_size + 8, api_key, api_version, correlation_id)
    name = b"" if client_id is None else client_id.encode()
    tags = b"\0" if version == 2 else b""
    size = REQUEST_FIXED.size + len(name) + len(tags) + body_size
    length = -1 if client_id is None else len(name)
    try:
        fixed = REQUEST_HEAD_V1.pack(size, api_key, api_version, correlation_id, length)
    except StructError as cause:
        raise EncodeError(f"request header: {cause}") from cause
    return fixed + name + tags


def response_head(version: int, body_size: int, correlation_id: int) -> bytes:
    """The size of the frame and the response header, for a body of `body_size` bytes."""
    if version == 0:
        return RESPONSE_HEAD_V0.pack(body_size + 4, correlation_id)
    return RESPONSE_HEAD_V1.pack(body_size + 5, correlation_id)
