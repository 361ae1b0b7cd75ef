"""Request and response headers of each version."""

import struct

import pytest

from network.protocol import (
    ApiKey,
    ProtocolError,
    RequestHeader,
    UnsupportedVersionError,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from network.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from network.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from network.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from network.protocol.messages.metadata import MetadataRequest


def request_frame(api: ApiKey, version: int, *rest: bytes) -> memoryview:
    return memoryview(struct.pack(">hhi", api, version, 77) + b"".join(rest))


def test_version_1_has_a_client_id() -> None:
    header, pos = decode_request_header(request_frame(ApiKey.METADATA, 8, b"\0\x03abc"))
    assert header == RequestHeader(api_key=3, api_version=8, correlation_id=77, client_id="abc")
    assert header.api_key == ApiKey.METADATA
    assert pos == 13


def test_the_client_id_may_be_null_or_empty() -> None:
    header, pos = decode_request_header(request_frame(ApiKey.METADATA, 8, b"\xff\xff"))
    assert (header.client_id, pos) == (None, 10)
    header, pos = decode_request_header(request_frame(ApiKey.METADATA, 8, b"\0\0"))
    assert (header.client_id, pos) == ("", 10)


def test_version_2_has_tagged_fields_behind_a_client_id_that_is_not_compact() -> None:
    header, pos = decode_request_header(request_frame(ApiKey.METADATA, 9, b"\0\x03abc\0"))
    assert (header.client_id, pos) == ("abc", 14)


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    tags = b"\x02" + b"\x05\x02zz" + b"\xc8\x01\x00"
    _, pos = decode_request_header(request_frame(ApiKey.METADATA, 9, b"\xff\xff", tags))
    assert pos == 10 + len(tags)


def test_controlled_shutdown_version_0_has_no_client_id() -> None:
    frame = request_frame(ApiKey.CONTROLLED_SHUTDOWN, 0, struct.pack(">i", 5))
    header, pos = decode_request_header(frame)
    assert (header.client_id, pos) == (None, 8)
    message = ControlledShutdownRequest(broker_id=5)
    (sent,) = encode_request(ApiKey.CONTROLLED_SHUTDOWN, 0, 77, message, "ignored")
    assert sent[4:] == frame


def test_a_version_without_schema_is_read_by_the_rule_of_its_api() -> None:
    header, pos = decode_request_header(request_frame(ApiKey.API_VERSIONS, 99, b"\0\x01c\0"))
    assert (header.api_version, header.client_id, pos) == (99, "c", 12)
    header, pos = decode_request_header(request_frame(ApiKey.API_VERSIONS, -1, b"\0\x01c"))
    assert (header.api_version, header.client_id, pos) == (-1, "c", 11)


def test_an_unknown_api_is_an_unsupported_version() -> None:
    frame = memoryview(struct.pack(">hhih", 999, 3, 1, -1))
    with pytest.raises(UnsupportedVersionError, match="API key 999") as caught:
        decode_request_header(frame)
    assert caught.value.api_key == 999


@pytest.mark.parametrize(
    "rest",
    [b"", b"\0", b"\0\x05abc", b"\0\x02\xc3\x28", b"\0\0", b"\0\0\x80", b"\0\0\x01\x00\x05a"],
)
def test_a_header_that_is_cut_or_garbled_is_a_protocol_error(rest: bytes) -> None:
    with pytest.raises(ProtocolError, match="request header"):
        decode_request_header(request_frame(ApiKey.METADATA, 9, rest))


def test_requests_are_framed_with_the_header_of_their_version() -> None:
    (old,) = encode_request(ApiKey.METADATA, 8, 77, MetadataRequest(topics=None), "abc")
    assert old.startswith(struct.pack(">ihhih", len(old) - 4, 3, 8, 77, 3) + b"abc" + b"\xff" * 4)
    (new,) = encode_request(ApiKey.METADATA, 9, 77, MetadataRequest(topics=None))
    assert new.startswith(struct.pack(">ihhihx", len(new) - 4, 3, 9, 77, -1) + b"\0")


def test_responses_are_framed_with_the_header_of_their_version() -> None:
    (old,) = encode_response(ApiKey.HEARTBEAT, 3, 77, HeartbeatResponse(error_code=1))
    assert old == struct.pack(">iiih", 10, 77, 0, 1)
    (new,) = encode_response(ApiKey.HEARTBEAT, 4, 77, HeartbeatResponse(error_code=1))
    assert new == struct.pack(">iixihx", 12, 77, 0, 1)


def test_api_versions_responses_always_have_header_version_0() -> None:
    (frame,) = encode_response(ApiKey.API_VERSIONS, 3, 77, ApiVersionsResponse(error_code=35))
    assert frame[:10] == struct.pack(">iih", len(frame) - 4, 77, 35)
    assert decode_response(ApiKey.API_VERSIONS, 3, memoryview(frame)[4:]) == (
        77,
        ApiVersionsResponse(error_code=35),
    )


def test_unknown_tagged_fields_of_a_response_header_are_skipped() -> None:
    frame = struct.pack(">i", 77) + b"\x01\x00\x03abc" + struct.pack(">ihx", 0, 9)
    expected = HeartbeatResponse(error_code=9)
    assert decode_response(ApiKey.HEARTBEAT, 4, memoryview(frame)) == (77, expected)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\x01", b"\0\0\0\x01\x01\x02"])
def test_a_response_header_that_is_cut_is_a_protocol_error(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_response(ApiKey.HEARTBEAT, 4, memoryview(frame))


def test_the_header_of_a_flexible_api_versions_request_is_flexible() -> None:
    request = ApiVersionsRequest(client_software_name="n", client_software_version="v")
    (frame,) = encode_request(ApiKey.API_VERSIONS, 3, 1, request, "c")
    assert frame[4:] == struct.pack(">hhih", 18, 3, 1, 1) + b"c\0" + b"\x02n\x02v\0"


def test_a_client_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="request header"):
        encode_request(ApiKey.HEARTBEAT, 0, 1, HeartbeatRequest(), "c" * 40_000)
