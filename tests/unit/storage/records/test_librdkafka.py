"""librdkafka's own bytes: its producer and consumer against the mock cluster that it carries.

The mock cluster stores batches as they were produced, so a fetch over a plain socket gives
librdkafka's bytes, and what is produced over that socket is what its consumer must understand.
"""

import socket
from collections.abc import Iterator
from contextlib import closing
from struct import Struct, pack
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from storage.records import BatchBuilder, Codec, Record, is_intact, iter_batches
from tests.unit.storage.records.samples import all_records

TIMEOUT_S = 10.0
PRODUCE, FETCH = 0, 1
PRODUCE_VERSION, FETCH_VERSION = 3, 4

SIZE = Struct(">i")
# Fetch response v4 up to the records, for one topic of seven letters and one partition:
# correlation id, throttle time, topics, name, partitions, partition, error, high watermark,
# last stable offset, aborted transactions, size of the records.
FETCHED_HEADER = Struct(">iiih7siihqqii")


def records_sent() -> list[Record]:
    return [
        Record(
            index,
            1_600_000_000_000 + index * 7,
            None if index % 3 == 0 else b"key-%d" % index,
            None if index == 4 else b"value " * index * 20,
            (("trace", b"%d" % index), ("empty", None)) if index % 2 else (),
        )
        for index in range(12)
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, int]]:
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    for codec in Codec:
        metadata = owner.list_topics(topic_of(codec), timeout=TIMEOUT_S)
    (broker,) = metadata.brokers.values()
    yield broker.host, broker.port
    owner.flush(TIMEOUT_S)


def call(address: tuple[str, int], api_key: int, version: int, body: bytes) -> bytes:
    request = pack(">hhih", api_key, version, 1, -1) + body
    with closing(socket.create_connection(address, TIMEOUT_S)) as connection:
        connection.sendall(SIZE.pack(len(request)) + request)
        with connection.makefile("rb") as stream:
            (size,) = SIZE.unpack(stream.read(SIZE.size))
            return stream.read(size)


def topic_of(codec: Codec) -> str:
    return f"codec-{codec:d}"


def encoded(topic: str) -> bytes:
    return pack(">h", len(topic)) + topic.encode()


def fetch(address: tuple[str, int], topic: str, partition: int) -> bytes:
    body = pack(">iiiib", -1, 1_000, 1, 2**30, 0) + pack(">i", 1) + encoded(topic)
    body += pack(">iiqi", 1, partition, 0, 2**30)
    response = call(address, FETCH, FETCH_VERSION, body)
    fields = FETCHED_HEADER.unpack_from(response)
    error, size = fields[7], fields[-1]
    assert error == 0
    return response[FETCHED_HEADER.size : FETCHED_HEADER.size + size]


def produce(address: tuple[str, int], topic: str, partition: int, records: bytes) -> None:
    body = pack(">hhii", -1, 1, 5_000, 1) + encoded(topic)
    body += pack(">iii", 1, partition, len(records)) + records
    response = call(address, PRODUCE, PRODUCE_VERSION, body)
    error = int.from_bytes(response[4 + 4 + 2 + len(topic) + 4 + 4 :][:2], signed=True)
    assert error == 0


def received(message: Any) -> Record:
    """A message of confluent-kafka, whose own types are wider than what it returns."""
    return Record(
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


@pytest.mark.parametrize("codec", Codec)
def test_batches_of_librdkafkas_producer_are_read(cluster: tuple[str, int], codec: Codec) -> None:
    host, port = cluster
    producer = Producer(
        {
            "bootstrap.servers": f"{host}:{port}",
            "compression.type": codec.name.lower(),
            "linger.ms": 200,
        }
    )
    for record in records_sent():
        producer.produce(
            topic_of(codec),
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            timestamp=record.timestamp,
            partition=0,
        )
    assert producer.flush(TIMEOUT_S) == 0
    data = fetch(cluster, topic_of(codec), 0)
    (batch,) = iter_batches(data)
    assert is_intact(batch)
    assert batch.header.codec is codec
    assert all_records(data) == records_sent()


@pytest.mark.parametrize("codec", Codec)
def test_batches_written_here_are_read_by_librdkafkas_consumer(
    cluster: tuple[str, int], codec: Codec
) -> None:
    host, port = cluster
    builder = BatchBuilder(codec=codec)
    for record in records_sent():
        builder.append(record.timestamp, record.key, record.value, record.headers)
    produce(cluster, topic_of(codec), 1, bytes(builder.build()))
    consumer = Consumer(
        {"bootstrap.servers": f"{host}:{port}", "group.id": "records", "check.crcs": True}
    )
    with closing(consumer):
        consumer.assign([TopicPartition(topic_of(codec), 1, 0)])
        messages = consumer.consume(len(records_sent()), TIMEOUT_S)
    assert [received(message) for message in messages] == records_sent()
