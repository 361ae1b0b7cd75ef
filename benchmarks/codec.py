"""Time to encode and to decode messages, beside kafka-python's codec and kio's.

    python -m benchmarks.codec [--seconds 0.3] [--only Produce]

All three codecs do the same work on the same bytes, header and frame included: they decode a
frame that was received into a bytearray, and encode an object that is at hand. The rivals'
objects are what they decoded themselves. Rounds of the three alternate, and a figure is the
best round, in microseconds of CPU time, so that other processes disturb it little. A row is
what a broker does for one exchange (decode the request, encode the response), or what its
client does (the other two); the parts are printed beside it.
"""

import argparse
import gc
import io
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import kafka.protocol.consumer as kafka_consumer
import kafka.protocol.metadata as kafka_metadata
import kafka.protocol.producer as kafka_producer
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from network.protocol import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from network.protocol.messages import api_versions, fetch, join_group, metadata, produce
from network.protocol.schema import ApiMessage, Request, Response

ROUNDS = 30
CLIENT = "client"


class Case(NamedTuple):
    title: str
    version: int
    request: Request
    response: Response


# The messages


def produce_case(title: str, records: bytes) -> Case:
    request = produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            produce.TopicProduceData(
                name="orders",
                partition_data=[produce.PartitionProduceData(index=3, records=records)],
            )
        ],
    )
    partition = produce.PartitionProduceResponse(
        index=3, base_offset=123_456_789, log_append_time_ms=-1, log_start_offset=1_000
    )
    topic = produce.TopicProduceResponse(name="orders", partition_responses=[partition])
    return Case(title, 8, request, produce.ProduceResponse(responses=[topic]))


def fetch_case(partitions: int) -> Case:
    request = fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        topics=[
            fetch.FetchTopic(
                topic="orders",
                partitions=[
                    fetch.FetchPartition(
                        partition=i,
                        current_leader_epoch=5,
                        fetch_offset=1_000_000 + i,
                        log_start_offset=-1,
                        partition_max_bytes=1 << 20,
                    )
                    for i in range(partitions)
                ],
            )
        ],
    )
    answers = [
        fetch.PartitionData(
            partition_index=i,
            high_watermark=1_000_001 + i,
            last_stable_offset=1_000_001 + i,
            log_start_offset=0,
            aborted_transactions=None,
            records=bytes(200),
        )
        for i in range(partitions)
    ]
    topic = fetch.FetchableTopicResponse(topic="orders", partitions=answers)
    response = fetch.FetchResponse(session_id=7, responses=[topic])
    return Case(f"Fetch v11, {partitions:,} part.", 11, request, response)


def metadata_case(topics: int, partitions: int) -> Case:
    names = [f"topic-{i}" for i in range(topics)]
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=name) for name in names]
    )
    brokers = [
        metadata.MetadataResponseBroker(node_id=i, host=f"broker-{i}", port=9092) for i in range(3)
    ]
    response = metadata.MetadataResponse(
        brokers=brokers,
        cluster_id="Zm9vYmFyYmF6cXV4cXV1eA",
        controller_id=1,
        topics=[
            metadata.MetadataResponseTopic(
                name=name,
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=i,
                        leader_id=i % 3,
                        leader_epoch=4,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for i in range(partitions)
                ],
            )
            for name in names
        ],
    )
    return Case(f"Metadata v9, {topics:,} x {partitions}", 9, request, response)


def api_versions_case() -> Case:
    request = api_versions.ApiVersionsRequest(
        client_software_name="librdkafka", client_software_version="2.6.0"
    )
    keys = [api_versions.ApiVersion(api_key=key, max_version=9) for key in range(48)]
    return Case("ApiVersions v3", 3, request, api_versions.ApiVersionsResponse(api_keys=keys))


def join_group_case() -> Case:
    protocols = [
        join_group.JoinGroupRequestProtocol(name=name, metadata=bytes(60))
        for name in ("range", "roundrobin")
    ]
    request = join_group.JoinGroupRequest(
        group_id="billing",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="billing-1-0b5e3c58-8e9f-4a53-9d2f-6a8c1f2d3e4b",
        protocol_type="consumer",
        protocols=protocols,
    )
    members = [
        join_group.JoinGroupResponseMember(
            member_id=f"billing-{i}-0b5e3c58-8e9f-4a53-9d2f-6a8c1f2d3e4b", metadata=bytes(60)
        )
        for i in range(3)
    ]
    response = join_group.JoinGroupResponse(
        generation_id=17,
        protocol_type="consumer",
        protocol_name="range",
        leader=members[0].member_id,
        member_id=members[0].member_id,
        members=members,
    )
    return Case("JoinGroup v7", 7, request, response)


def cases() -> list[Case]:
    return [
        produce_case("Produce v8, 100 B", bytes(100)),
        produce_case("Produce v8, 1 MB", bytes(1 << 20)),
        fetch_case(1),
        fetch_case(1_000),
        metadata_case(1_000, 10),
        api_versions_case(),
        join_group_case(),
    ]


# The codecs


class Codec(NamedTuple):
    """One codec's way with one kind of message: each function takes nothing."""

    decode: Callable[[], object]
    encode: Callable[[], object]


def our_codec(message: ApiMessage, version: int, frame: memoryview) -> Codec:
    api = message.API_KEY

    def decode_a_request() -> object:
        header, pos = decode_request_header(frame)
        return decode_request(header.api_key, header.api_version, frame, pos)

    if isinstance(message, Request):
        return Codec(decode_a_request, lambda: encode_request(api, version, 1, message, CLIENT))
    assert isinstance(message, Response)
    return Codec(
        lambda: decode_response(api, version, frame),
        lambda: encode_response(api, version, 1, message),
    )


def kafka_python_codec(message: ApiMessage, version: int, frame: memoryview) -> Codec:
    name = type(message).__name__
    modules = (kafka_producer, kafka_consumer, kafka_metadata)
    cls: Any = next(getattr(module, name) for module in modules if hasattr(module, name))
    entity = cls.decode(frame, version=version, header=True)
    return Codec(
        lambda: cls.decode(frame, version=version, header=True),
        lambda: entity.encode(header=True, framed=True),
    )


def kio_codec(message: ApiMessage, version: int, frame: memoryview) -> Codec:
    load = load_request_schema if isinstance(message, Request) else load_response_schema
    schema: Any = load(message.API_KEY, version)
    read_header = entity_reader(schema.__header_schema__)
    write_header = entity_writer(schema.__header_schema__)
    read, write = entity_reader(schema), entity_writer(schema)

    def decode() -> tuple[Any, Any]:
        received = bytes(frame)  # kio refuses writable buffers
        header, pos = read_header(received, 0)
        return header, read(received, pos)[0]

    def encode() -> bytes:
        out = io.BytesIO()
        out.write(bytes(4))
        write_header(out, header)
        write(out, entity)
        size = out.tell() - 4
        out.seek(0)
        out.write(size.to_bytes(4, "big"))
        return out.getvalue()

    header, entity = decode()
    return Codec(decode, encode)


def frame_of(parts: list[Any]) -> memoryview:
    return memoryview(bytearray(b"".join(parts)))[4:]


# The measurements


def microseconds(works: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The time of one call of each, in the best of several rounds."""
    counts = []
    for work in works:
        work()
        start = time.process_time()
        work()
        counts.append(max(1, int(seconds / ROUNDS / max(1e-7, time.process_time() - start))))
    best = [float("inf")] * len(works)
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for index, (work, count) in enumerate(zip(works, counts, strict=True)):
                start = time.process_time()
                for _ in range(count):
                    work()
                best[index] = min(best[index], (time.process_time() - start) / count)
    finally:
        gc.enable()
    return [one * 1e6 for one in best]


class Timing(NamedTuple):
    """Decoding and encoding times of one kind of message, by codec."""

    decode: list[float]
    encode: list[float]


def timing(message: ApiMessage, version: int, frame: memoryview, seconds: float) -> Timing:
    codecs = [make(message, version, frame) for make in (our_codec, kafka_python_codec, kio_codec)]
    return Timing(
        microseconds([codec.decode for codec in codecs], seconds),
        microseconds([codec.encode for codec in codecs], seconds),
    )


def print_row(title: str, first: list[float], second: list[float]) -> bool:
    """Print who needs how long for both parts; returns whether ours is ahead of all others."""
    sums = [a + b for a, b in zip(first, second, strict=True)]
    cells = "".join(
        f"{total:11.2f} ={a:9.2f} +{b:9.2f}"
        for total, a, b in zip(sums, first, second, strict=True)
    )
    lead = min(sums[1:]) / sums[0]
    print(f"{title:34}{cells}{lead:8.1f}x", flush=True)
    return lead > 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Codec times beside kafka-python and kio")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure")
    parser.add_argument("--only", default="", help="messages whose title contains this")
    options = parser.parse_args()
    print(f"{'us per exchange':34}{'ours':^33}{'kafka-python':^33}{'kio':^33}{'ahead by':>9}")
    ahead: list[bool] = []
    request_times: dict[str, float] = {}
    for case in cases():
        if options.only not in case.title:
            continue
        api, version = case.request.API_KEY, case.version
        request = frame_of(encode_request(api, version, 1, case.request, CLIENT))
        response = frame_of(encode_response(api, version, 1, case.response))
        requests = timing(case.request, version, request, options.seconds)
        responses = timing(case.response, version, response, options.seconds)
        request_times[case.title] = requests.decode[0] + requests.encode[0]
        ahead.append(print_row(f"{case.title}: broker", requests.decode, responses.encode))
        ahead.append(print_row(f"{case.title}: client", responses.decode, requests.encode))
    if {"Produce v8, 100 B", "Produce v8, 1 MB"} <= request_times.keys():
        growth = request_times["Produce v8, 1 MB"] / request_times["Produce v8, 100 B"]
        print(f"a produce request of 1 MB takes {growth:.2f} times as long as one of 100 bytes")
    print("ahead on every row" if all(ahead) else f"behind on {ahead.count(False)} rows")
    return 0 if all(ahead) else 1


if __name__ == "__main__":
    sys.exit(main())
