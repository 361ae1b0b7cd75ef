"""Single requests in any version, for tests that ask a real broker."""

import itertools

from network.protocol import ErrorCode
from network.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from network.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from network.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from network.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from network.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.raw_client import RawClient, read_records

LATEST, EARLIEST = -1, -2
PLENTY = 1 << 20

numbers = itertools.count()


def new_topic(client: RawClient, partitions: int = 1, **config: str) -> str:
    """A topic of a name that no test has used."""
    name = f"topic-{next(numbers)}"
    create_topic(client, name, partitions, **config)
    return name


def create_topic(client: RawClient, name: str, partitions: int = 1, **config: str) -> None:
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in config.items()
    ]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=settings
    )
    result = create(client, topic)
    assert result.error_code == ErrorCode.NONE, result


def create(
    client: RawClient, topic: CreatableTopic, version: int = 5, timeout_ms: int = 20_000
) -> CreatableTopicResult:
    request = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
    result: CreatableTopicResult = client.ask(request, version).topics[0]
    return result


def produce(
    client: RawClient,
    topic: str,
    batch: bytes,
    *,
    version: int = 8,
    acks: int = -1,
    partition: int = 0,
) -> PartitionProduceResponse:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=partition, records=memoryview(bytearray(batch)))
                ],
            )
        ],
    )
    result: PartitionProduceResponse = (
        client.ask(request, version).responses[0].partition_responses[0]
    )
    return result


def fetch(
    client: RawClient,
    topic: str,
    offset: int,
    *,
    version: int = 11,
    max_bytes: int = PLENTY,
    min_bytes: int = 1,
    max_wait_ms: int = 0,
    partition_max_bytes: int = PLENTY,
) -> PartitionData:
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=partition_max_bytes
                    )
                ],
            )
        ],
    )
    result: PartitionData = client.ask(request, version).responses[0].partitions[0]
    return result


def values(data: PartitionData) -> list[bytes | None]:
    assert isinstance(data.records, memoryview)
    return [record.value for record in read_records(data.records)]


def list_offset(
    client: RawClient,
    topic: str,
    timestamp: int,
    version: int = 5,
    *,
    epoch: int = -1,
    count: int = 1,
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch, max_num_offsets=count
    )
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    result: ListOffsetsPartitionResponse = client.ask(request, version).topics[0].partitions[0]
    return result


def describe(
    client: RawClient, topic: str, version: int = 9, **options: bool
) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], **options)
    result: MetadataResponseTopic = client.ask(request, version).topics[0]
    return result
