"""librdkafka, through confluent-kafka."""

from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.records import PARTITIONS, Content, Sample, exchange

TIMEOUT_SECONDS = 60.0


class ConfluentKafka:
    def create_topic(self, bootstrap: str, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        created = admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
        created[topic].result(TIMEOUT_SECONDS)

    def produce(self, bootstrap: str, topic: str, codec: str, content: Content) -> None:
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for partition, samples in enumerate(content):
            for sample in samples:
                producer.produce(
                    topic,
                    partition=partition,
                    key=sample.key,
                    value=sample.value,
                    headers=list(sample.headers),
                    timestamp=sample.timestamp,
                    on_delivery=lambda error, _message: failures.append(error) if error else None,
                )
                producer.poll(0)
        assert producer.flush(TIMEOUT_SECONDS) == 0
        assert failures == []

    def consume(self, bootstrap: str, topic: str, counts: Sequence[int]) -> Content:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        content: Content = [[] for _ in counts]
        try:
            consumer.assign([TopicPartition(topic, index, 0) for index in range(len(counts))])
            while sum(map(len, content)) < sum(counts):
                messages = consumer.consume(5000, TIMEOUT_SECONDS)
                assert messages, "nothing came within the time"
                for message in messages:
                    assert message.error() is None
                    partition = message.partition()
                    assert partition is not None
                    content[partition].append(as_sample(message))
        finally:
            consumer.close()
        return content


def as_sample(message: Message) -> Sample:
    key, value, headers = message.key(), message.value(), message.headers()
    assert isinstance(key, bytes)
    assert isinstance(value, bytes)
    assert isinstance(headers, list)
    named = tuple((name, text) for name, text in headers if isinstance(text, bytes))
    return Sample(key, value, named, message.timestamp()[1])


def test_every_codec_survives_restart_and_kill(tmp_path: Path) -> None:
    exchange(ConfluentKafka(), tmp_path)
