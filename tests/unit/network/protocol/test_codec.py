"""What encoding and decoding promise beyond the bytes: parts, views, versions, errors."""

import struct
import subprocess
import sys

import pytest

from network.protocol import (
    ApiKey,
    EncodeError,
    ErrorCode,
    ProtocolError,
    UnsupportedVersionError,
    decode_message,
    decode_request,
    decode_request_header,
    decode_response,
    encode_message,
    encode_request,
    encode_response,
)
from network.protocol.compiler.decoder import COPY_LIMIT
from network.protocol.compiler.encoder import INLINE_LIMIT
from network.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from network.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from network.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from network.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from network.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from network.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


class FileSlice:
    """Stands for bytes of a file that no one has read."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def produce_request(*records: bytes | memoryview | None) -> ProduceRequest:
    partitions = [
        PartitionProduceData(index=index, records=data) for index, data in enumerate(records)
    ]
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=partitions)])


def fetch_response(*records: object) -> FetchResponse:
    partitions = [PartitionData(records=data) for data in records]  # type: ignore[arg-type]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.mark.parametrize("size", [1, 100, COPY_LIMIT, 1 << 20])
@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 11])
def test_records_are_decoded_as_views_of_the_received_buffer(version: int, size: int) -> None:
    parts = encode_request(ApiKey.PRODUCE, version, 1, produce_request(bytes(size), b"x" * size))
    received = bytearray(b"".join(parts))
    frame = memoryview(received)[4:]
    _, pos = decode_request_header(frame)
    request = decode_request(ApiKey.PRODUCE, version, frame, pos)
    assert isinstance(request, ProduceRequest)
    first, second = (data.records for data in request.topic_data[0].partition_data)
    assert isinstance(first, memoryview)
    assert isinstance(second, memoryview)
    assert first.obj is received
    received[:] = b"y" * len(received)
    assert (bytes(first), bytes(second)) == (b"y" * size, b"y" * size)


def test_null_records_are_none_and_empty_records_are_empty() -> None:
    (frame,) = encode_request(ApiKey.PRODUCE, 8, 1, produce_request(None, b""))
    view = memoryview(frame)[4:]
    request = decode_request(ApiKey.PRODUCE, 8, view, decode_request_header(view)[1])
    assert isinstance(request, ProduceRequest)
    assert [data.records for data in request.topic_data[0].partition_data] == [None, b""]


@pytest.mark.parametrize("version", [0, 4, 11, 12, 17])
def test_a_region_without_bytes_becomes_a_part_of_its_own(version: int) -> None:
    small, large = FileSlice(10), FileSlice(5_000_000)
    parts = encode_response(ApiKey.FETCH, version, 1, fetch_response(small, large))
    assert [type(part) for part in parts[:4]] == [bytes, FileSlice, bytes, FileSlice]
    assert parts[1] is small
    assert parts[3] is large
    assert int.from_bytes(parts[0][:4], "big") == sum(map(len, parts)) - 4


def test_large_records_in_memory_are_not_copied_and_small_ones_are_joined() -> None:
    small, large = memoryview(bytes(INLINE_LIMIT)), bytearray(INLINE_LIMIT + 1)
    parts = encode_response(ApiKey.FETCH, 11, 1, fetch_response(small, large))
    assert len(parts) == 2
    assert parts[1] is large


def test_the_parts_of_a_response_join_to_what_decodes() -> None:
    sent = fetch_response(b"a" * 10, b"b" * 9_000, None, b"", b"c" * 2_000)
    for version in range(18):
        frame = b"".join(encode_response(ApiKey.FETCH, version, 9, sent))
        correlation_id, received = decode_response(ApiKey.FETCH, version, memoryview(frame)[4:])
        assert correlation_id == 9
        assert isinstance(received, FetchResponse)
        records = [data.records for data in received.responses[0].partitions]
        assert records == [b"a" * 10, b"b" * 9_000, None, b"", b"c" * 2_000]


def test_a_message_without_records_is_one_part() -> None:
    assert len(encode_response(ApiKey.HEARTBEAT, 4, 1, HeartbeatResponse())) == 1


def test_an_enum_can_be_sent_as_a_number() -> None:
    code = ErrorCode.REBALANCE_IN_PROGRESS
    (frame,) = encode_response(ApiKey.HEARTBEAT, 0, 1, HeartbeatResponse(error_code=code))
    assert decode_response(ApiKey.HEARTBEAT, 0, memoryview(frame)[4:])[1] == HeartbeatResponse(
        error_code=27
    )


def test_a_field_that_the_version_lacks_is_refused_unless_it_holds_its_default() -> None:
    with pytest.raises(EncodeError, match=r"group_instance_id is 'i', but version 2"):
        encode_request(ApiKey.HEARTBEAT, 2, 1, HeartbeatRequest(group_instance_id="i"))
    encode_request(ApiKey.HEARTBEAT, 2, 1, HeartbeatRequest())
    with pytest.raises(EncodeError, match="replica_id is 5"):
        encode_request(ApiKey.FETCH, 15, 1, FetchRequest(replica_id=5))
    with pytest.raises(EncodeError, match="allow_auto_topic_creation is False"):
        encode_request(ApiKey.METADATA, 3, 1, MetadataRequest(allow_auto_topic_creation=False))


def test_an_ignorable_field_that_the_version_lacks_is_dropped() -> None:
    with_rack = encode_request(ApiKey.FETCH, 10, 1, FetchRequest(rack_id="r"))
    assert with_rack == encode_request(ApiKey.FETCH, 10, 1, FetchRequest())


@pytest.mark.parametrize(
    "message",
    [
        HeartbeatRequest(generation_id=2**31),
        HeartbeatRequest(group_id="g" * 40_000),
        HeartbeatRequest(group_id=None),  # type: ignore[arg-type]
        HeartbeatRequest(group_id="\ud800"),
        HeartbeatRequest(generation_id="1"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_cannot_be_encoded_is_an_encode_error(message: HeartbeatRequest) -> None:
    with pytest.raises(EncodeError, match="HeartbeatRequest v3"):
        encode_request(ApiKey.HEARTBEAT, 3, 1, message)


def test_a_uuid_that_is_not_sixteen_bytes_is_refused() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"short")])
    with pytest.raises(EncodeError, match="16 bytes"):
        encode_request(ApiKey.METADATA, 12, 1, request)


@pytest.mark.parametrize(("api_key", "version"), [(12, 5), (12, -1), (999, 0), (55, 0)])
def test_a_version_without_schema_is_an_unsupported_version(api_key: int, version: int) -> None:
    with pytest.raises(UnsupportedVersionError):
        decode_request(api_key, version, memoryview(b""), 0)
    with pytest.raises(UnsupportedVersionError):
        decode_response(api_key, version, memoryview(b""))
    with pytest.raises(UnsupportedVersionError):
        encode_response(api_key, version, 1, HeartbeatResponse())
    with pytest.raises(UnsupportedVersionError):
        encode_request(api_key, version, 1, HeartbeatRequest())


def test_a_message_without_header_has_no_other_versions_than_declared() -> None:
    with pytest.raises(ProtocolError, match="only versions 0-4"):
        decode_message(HeartbeatRequest, 5, memoryview(b""))
    with pytest.raises(EncodeError, match="only versions 0-4"):
        encode_message(HeartbeatRequest(), 5)


def test_tagged_fields_are_sent_only_when_set() -> None:
    def body(response: ApiVersionsResponse) -> bytes:
        return b"".join(encode_message(response, 3))

    assert body(ApiVersionsResponse()) == struct.pack(">hBi", 0, 1, 0) + b"\0"
    migrating = ApiVersionsResponse(finalized_features_epoch=5, zk_migration_ready=True)
    tags = b"\x02" + b"\x01\x08" + struct.pack(">q", 5) + b"\x03\x01\x01"
    assert body(migrating) == struct.pack(">hBi", 0, 1, 0) + tags


def test_tagged_fields_of_any_type_survive_the_wire() -> None:
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=1, min_version=2, max_version=3)] * 200,
        supported_features=[SupportedFeatureKey(name="f" * 200, min_version=1)],
        finalized_features_epoch=7,
        finalized_features=[FinalizedFeatureKey(name="g", max_version_level=4)],
    )
    body = b"".join(encode_message(response, 3))
    assert decode_message(ApiVersionsResponse, 3, memoryview(body)) == response
    request = FetchRequest(cluster_id="c", replica_state=ReplicaState(replica_id=1))
    body = b"".join(encode_message(request, 17))
    assert decode_message(FetchRequest, 17, memoryview(body)) == request


def test_unknown_tagged_fields_are_skipped_wherever_they_stand() -> None:
    unknown = b"\x02\x63\x03abc\xac\x02\x01z"
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=1))
    sent = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    body = b"".join(encode_message(sent, 12))
    leader = b"\x01\x01\x09\x00\x00\x00\x01\xff\xff\xff\xff\x00"
    assert body.endswith(leader + b"\0\0")
    larger = body[:-2] + unknown + unknown
    assert decode_message(FetchResponse, 12, memoryview(larger)) == sent


def test_a_tagged_field_of_another_size_than_declared_is_a_protocol_error() -> None:
    head = struct.pack(">hBi", 0, 1, 0)
    for size in (0, 7, 9):
        body = head + b"\x01\x01" + bytes([size]) + bytes(max(size, 8))
        with pytest.raises(ProtocolError, match="finalized_features_epoch"):
            decode_message(ApiVersionsResponse, 3, memoryview(body))


def test_a_struct_may_be_null() -> None:
    for assignment in (None, Assignment()):
        sent = ConsumerGroupHeartbeatResponse(member_id="m", assignment=assignment)
        body = b"".join(encode_message(sent, 0))
        assert decode_message(ConsumerGroupHeartbeatResponse, 0, memoryview(body)) == sent


def test_no_message_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, network.protocol as p\n"
        "loaded = lambda part: [m for m in sys.modules if m.startswith(p.__name__ + part)]\n"
        "assert not loaded('.messages.') and not loaded('.compiler')\n"
        "p.request_class(p.ApiKey.FETCH)\n"
        "assert loaded('.messages.') == ['network.protocol.messages.fetch']\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
