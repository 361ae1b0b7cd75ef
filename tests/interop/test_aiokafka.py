"""aiokafka."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.interop.records import PARTITIONS, Content, Sample, exchange

TIMEOUT_SECONDS = 60.0


class AioKafka:
    def create_topic(self, bootstrap: str, topic: str) -> None:
        asyncio.run(self._create_topic(bootstrap, topic))

    def produce(self, bootstrap: str, topic: str, codec: str, content: Content) -> None:
        asyncio.run(self._produce(bootstrap, topic, codec, content))

    def consume(self, bootstrap: str, topic: str, counts: Sequence[int]) -> Content:
        return asyncio.run(self._consume(bootstrap, topic, counts))

    async def _create_topic(self, bootstrap: str, topic: str) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
        finally:
            await admin.close()

    async def _produce(self, bootstrap: str, topic: str, codec: str, content: Content) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
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
            await asyncio.wait_for(asyncio.gather(*sent), TIMEOUT_SECONDS)
        finally:
            await producer.stop()

    async def _consume(self, bootstrap: str, topic: str, counts: Sequence[int]) -> Content:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        content: Content = [[] for _ in counts]
        consumer.assign([TopicPartition(topic, index) for index in range(len(counts))])
        await consumer.start()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while sum(map(len, content)) < sum(counts):
                    batches = await consumer.getmany(timeout_ms=1000)
                    for partition, records in batches.items():
                        content[partition.partition].extend(
                            Sample(one.key, one.value, tuple(one.headers), one.timestamp)
                            for one in records
                        )
        finally:
            await consumer.stop()
        return content


def test_every_codec_survives_restart_and_kill(tmp_path: Path) -> None:
    exchange(AioKafka(), tmp_path)
