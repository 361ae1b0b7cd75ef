"""kafka-python."""

from collections.abc import Sequence
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from tests.interop.records import PARTITIONS, Content, Sample, exchange

TIMEOUT_MS = 60_000


class KafkaPython:
    def create_topic(self, bootstrap: str, topic: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
        finally:
            admin.close()

    def produce(self, bootstrap: str, topic: str, codec: str, content: Content) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=False,
            linger_ms=20,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    partition=partition,
                    key=sample.key,
                    value=sample.value,
                    headers=list(sample.headers),
                    timestamp_ms=sample.timestamp,
                )
                for partition, samples in enumerate(content)
                for sample in samples
            ]
            producer.flush(TIMEOUT_MS / 1000)
            for future in sent:
                future.get(timeout=TIMEOUT_MS / 1000)
        finally:
            producer.close()

    def consume(self, bootstrap: str, topic: str, counts: Sequence[int]) -> Content:
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            consumer_timeout_ms=TIMEOUT_MS,
        )
        content: Content = [[] for _ in counts]
        try:
            consumer.assign([TopicPartition(topic, index) for index in range(len(counts))])
            for record in consumer:
                content[record.partition].append(
                    Sample(
                        record.key,
                        record.value,
                        tuple((name, value) for name, value in record.headers),
                        record.timestamp,
                    )
                )
                if sum(map(len, content)) == sum(counts):
                    break
        finally:
            consumer.close()
        return content


def test_every_codec_survives_restart_and_kill(tmp_path: Path) -> None:
    exchange(KafkaPython(), tmp_path)
