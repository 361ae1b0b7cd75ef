"""Each kind of bad input by itself: a ProtocolError that says what is wrong, and no allocation."""

import struct
import tracemalloc

import pytest

from network.protocol import ApiKey, ProtocolError, decode_message, decode_request, encode_message
from network.protocol.messages.elect_leaders import ElectLeadersRequest
from network.protocol.messages.heartbeat import HeartbeatRequest
from network.protocol.messages.join_group import JoinGroupRequest
from network.protocol.messages.metadata import MetadataRequest
from network.protocol.messages.produce import ProduceRequest
from network.protocol.schema import Message
from tests.unit.network.protocol.samples import Sampler, every_message


def refuse(message: type[Message], version: int, body: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode_message(message, version, memoryview(bytearray(body)))


@pytest.mark.parametrize("version", [0, 4])
def test_a_string_length_beyond_the_frame(version: int) -> None:
    length = b"\x7f\xff" if version == 0 else b"\xff\x7f"
    refuse(HeartbeatRequest, version, length + b"abc", r"HeartbeatRequest v\d: ")


def test_a_string_that_ends_the_message_early() -> None:
    refuse(MetadataRequest, 0, struct.pack(">ih", 1, 9) + b"abc", "ends 6 bytes early")


def test_a_negative_length_where_null_is_not_allowed() -> None:
    refuse(HeartbeatRequest, 0, struct.pack(">hih", -1, 1, 0), "group_id has length -1")
    refuse(HeartbeatRequest, 4, b"\x00" * 9, "group_id has length 0")
    refuse(
        JoinGroupRequest, 0, struct.pack(">hihhihi", 0, 1, 0, 0, 1, 0, -1), "metadata has length -1"
    )


def test_a_negative_count_where_null_is_not_allowed() -> None:
    refuse(MetadataRequest, 0, struct.pack(">i", -1), "topics counts -1")
    refuse(ProduceRequest, 9, struct.pack(">BhiB", 0, 1, 1, 0) + b"\0", "topic_data counts -1")


def test_bad_utf8() -> None:
    refuse(MetadataRequest, 0, struct.pack(">ih", 1, 2) + b"\xc3\x28", "utf-8")


def test_bytes_behind_a_message_are_ignored_as_kafka_ignores_them() -> None:
    body = struct.pack(">i", 0) + b"abc"
    assert decode_message(MetadataRequest, 0, memoryview(body)) == MetadataRequest(topics=[])


def test_an_endless_varint() -> None:
    refuse(HeartbeatRequest, 4, b"\xff" * 40, "varint")
    refuse(MetadataRequest, 9, b"\xff" * 40, "varint")


def test_a_body_position_behind_the_frame() -> None:
    with pytest.raises(ProtocolError):
        decode_request(ApiKey.HEARTBEAT, 0, memoryview(b"abc"), 50)


def test_every_truncation_of_every_message() -> None:
    for message, version in every_message():
        body = b"".join(encode_message(Sampler(3).message(message, version), version))
        step = max(1, len(body) // 25)
        for size in range(0, len(body), step):
            with pytest.raises(ProtocolError):
                decode_message(message, version, memoryview(body[:size]))


@pytest.mark.parametrize("count", [2**31 - 1, 2**20, 100, 6])
def test_a_count_beyond_the_frame_allocates_nothing(count: int) -> None:
    bodies: list[tuple[type[Message], int, bytes]] = [
        (MetadataRequest, 0, struct.pack(">i", count) + bytes(10)),
        (ProduceRequest, 8, struct.pack(">hhii", -1, 1, 1, count) + bytes(6)),
        (JoinGroupRequest, 0, struct.pack(">hihhi", 0, 1, 0, 0, count) + bytes(8)),
    ]
    for message, version, body in bodies:
        decode_nothing(message, version)
        tracemalloc.start()
        try:
            refuse(message, version, body, f"counts {count} elements")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 100_000


def test_a_count_of_numbers_beyond_the_frame_allocates_nothing() -> None:
    for version, body in (
        (0, struct.pack(">ihi", 1, 0, 2**31 - 1) + bytes(8)),
        (2, b"\x00\x02\x01" + b"\xff\xff\xff\xff\x0f" + bytes(8)),
        (2, b"\x00\x02\x01" + b"\x00" + bytes(8)),
        (0, struct.pack(">ihi", 1, 0, -1) + bytes(8)),
    ):
        decode_nothing(ElectLeadersRequest, version)
        tracemalloc.start()
        try:
            refuse(ElectLeadersRequest, version, body, "ElectLeadersRequest")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 100_000


def decode_nothing(message: type[Message], version: int) -> None:
    """Have the codec compiled, whose memory is not the frame's."""
    with pytest.raises(ProtocolError):
        decode_message(message, version, memoryview(b""))
