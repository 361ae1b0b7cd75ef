"""Stock clients as fidelity needs them: batches where they are asked for, all records consumed.

Owns the calls of confluent-kafka and kafka-python. Must not know which broker answers.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaProducer

from tests.fidelity.consumed import ConsumedRecord, ReadTopic
from tests.fidelity.samples import Sample

TIMEOUT_SECONDS: Final = 30.0
_CONSUME_SECONDS: Final = 0.2
_TIMESTAMP_TYPES: Final = {
    TIMESTAMP_NOT_AVAILABLE: "NoTimestampType",
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}
# librdkafka reports the end of the connection when a broker is stopped under it, which is meant.
_QUIET: Final = {"log_level": 0}


class Rdkafka:
    """A librdkafka producer that sends one batch at a time."""

    def __init__(self, bootstrap: str, **settings: Any) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 10_000,
                **_QUIET,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._failures: list[KafkaError] = []

    def send(self, topic: str, batch: Iterable[Sample], partition: int = 0) -> None:
        """Send the records as one batch and wait until it is acknowledged."""
        for sample in batch:
            self.producer.produce(
                topic,
                sample.value,
                sample.key,
                partition,
                timestamp=sample.timestamp,
                headers=list(sample.headers),
                on_delivery=self._delivered,
            )
        left = self.producer.flush(TIMEOUT_SECONDS)
        assert not left, f"{left} records are not acknowledged"
        assert not self._failures, self._failures

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._failures.append(error)


def send_with_kafka_python(
    bootstrap: str,
    topic: str,
    batches: Iterable[Sequence[Sample]],
    *,
    codec: str | None = None,
    api_version: tuple[int, ...] | None = None,
) -> None:
    """Send batches with kafka-python, which speaks as an old client does if asked to.

    It knows neither headers without a value nor records without both key and value: the one are
    left out, the others get a value.
    """
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        linger_ms=60_000,
        compression_type=codec,
        api_version=api_version,
        enable_idempotence=False,
    )
    try:
        for batch in batches:
            pending = [
                producer.send(
                    topic,
                    key=sample.key,
                    value=b"" if sample.key is sample.value is None else sample.value,
                    headers=[(n, v) for n, v in sample.headers if v is not None],
                    partition=0,
                    timestamp_ms=sample.timestamp,
                )
                for sample in batch
            ]
            producer.flush(TIMEOUT_SECONDS)
            for result in pending:
                result.get(TIMEOUT_SECONDS)
    finally:
        producer.close(timeout=1)


def create_topics(
    bootstrap: str, configs: Mapping[str, Mapping[str, str]], partitions: int = 1
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    topics = [NewTopic(name, partitions, 1, config=dict(c)) for name, c in configs.items()]
    for result in admin.create_topics(topics).values():
        result.result(TIMEOUT_SECONDS)


def list_partitions(bootstrap: str) -> list[tuple[str, int]]:
    """All partitions that the broker knows, internal ones included."""
    found = AdminClient({"bootstrap.servers": bootstrap, **_QUIET}).list_topics(
        timeout=TIMEOUT_SECONDS
    )
    return sorted((name, p) for name, topic in found.topics.items() for p in topic.partitions)


def offsets_for_timestamp(
    bootstrap: str, partitions: Iterable[tuple[str, int]], timestamp: int
) -> dict[tuple[str, int], int]:
    """The first offset with at least this timestamp, -1 where there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "fidelity-reader", **_QUIET})
    try:
        wanted = [TopicPartition(topic, partition, timestamp) for topic, partition in partitions]
        found = consumer.offsets_for_times(wanted, TIMEOUT_SECONDS)
    finally:
        consumer.close()
    assert all(answer.error is None for answer in found), found
    return {(answer.topic, answer.partition): answer.offset for answer in found}


def consume(
    bootstrap: str, partitions: Iterable[tuple[str, int]], *, isolation: str = "read_uncommitted"
) -> ReadTopic:
    """All records of the partitions, from the first to the last that a consumer may read."""
    left = set(partitions)
    read: ReadTopic = {partition: [] for partition in left}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "fidelity-reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "check.crcs": True,
            "fetch.wait.max.ms": 10,
            **_QUIET,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, p, 0) for topic, p in sorted(left)])
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while left:
            messages = consumer.consume(500, _CONSUME_SECONDS)
            assert time.monotonic() < deadline, f"nothing comes from {left}"
            for message in messages:
                topic, partition, error = message.topic(), message.partition(), message.error()
                assert topic is not None
                assert partition is not None
                if error is None:
                    read[topic, partition].append(_consumed(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard((topic, partition))
                else:
                    raise AssertionError(error)
    finally:
        consumer.close()
    return read


def _consumed(message: Any) -> ConsumedRecord:
    timestamp_type, timestamp = message.timestamp()
    return ConsumedRecord(
        message.offset(),
        timestamp if timestamp_type != TIMESTAMP_NOT_AVAILABLE else -1,
        _TIMESTAMP_TYPES[timestamp_type],
        message.key(),
        message.value(),
        tuple((name, value) for name, value in message.headers() or ()),
    )
