"""Headers of requests and responses: what stands in a frame before the message.

Knows which header goes with which version of an API, and nothing of what the messages hold.
"""

from struct import Struct as Layout
from struct import error as StructError  # noqa: N812 - an exception, named like one

from network.protocol.api_keys import ApiKey
from network.protocol.exceptions import EncodeError, ProtocolError
from network.protocol.primitives import skip_tagged_fields
from network.protocol.registry import VersionTable, request_class, response_class
from network.protocol.schema import Struct, blank_class, int16, int32, string

# Request header, versions 0 to 2; the size counts what follows it:
#
#   | size i32 | api_key i16 | api_version i16 | correlation_id i32 |               0
#                                   | client_id length i16 | client_id bytes |      1 adds
#                                                          | tagged fields |      2 adds
#
# The client id keeps its two-byte length in version 2, so that a broker can read the header
# of a request whose version it does not know. A request that is valid with header version 0
# is long enough to be read like the others: its body is an int32.
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


class RequestHeader(Struct):
    """Who asks for what; `api_key` is a plain integer that compares equal to its `ApiKey`."""

    api_key: int = int16()
    api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string("1+", null="1+", default=None)


def request_header_version(api_key: int, api_version: int) -> int:
    """The header version of a request, which may be of a version that no schema covers."""
    flexible = api_version in request_class(api_key).FLEXIBLE
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    return 2 if flexible else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The header version of a response.

    That of ApiVersions is always 0: the client cannot know yet what the broker understands.
    """
    flexible = api_version in response_class(api_key).FLEXIBLE
    return 1 if flexible and api_key != ApiKey.API_VERSIONS else 0


class RequestHeaderVersions(VersionTable[int]):
    """The header version of each version of each API's requests."""

    def make(self, api_key: int, api_version: int) -> int:
        return request_header_version(api_key, api_version)


_read_fixed = REQUEST_FIXED.unpack_from
_new_header = blank_class(RequestHeader)
_header_versions = RequestHeaderVersions()


def decode_request_header(view: memoryview) -> tuple[RequestHeader, int]:
    """Read the header of a frame; returns it with the position at which the body starts.

    A known API in a version that no schema covers is not an error here, since who answers may
    want to say so; an unknown API raises UnsupportedVersionError.
    """
    header = _new_header()
    try:
        api_key, api_version, header.correlation_id, length = _read_fixed(view, 0)
        header.api_key = api_key
        header.api_version = api_version
        version = _header_versions[(api_key << 16) + api_version]
        if length >= 0 and version:
            pos = 10 + length
            header.client_id = view[10:pos].tobytes().decode()
        else:
            header.client_id = None
            pos = 10 if version else 8
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


def decode_response_header(view: memoryview, version: int) -> tuple[int, int]:
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
    body_size: int, api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The size of the frame and the request header, for a body of `body_size` bytes."""
    version = _header_versions[(api_key << 16) + api_version]
    try:
        if version == 0:
            return REQUEST_HEAD_V0.pack(body_size + 8, api_key, api_version, correlation_id)
        name = b"" if client_id is None else client_id.encode()
        length = -1 if client_id is None else len(name)
        tags = b"\0" if version == 2 else b""
        size = body_size + 10 + len(name) + len(tags)
        fixed = REQUEST_HEAD_V1.pack(size, api_key, api_version, correlation_id, length)
    except StructError as cause:
        raise EncodeError(f"request header: {cause}") from cause
    return fixed + name + tags
