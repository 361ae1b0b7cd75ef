"""The admin clients of confluent-kafka and kafka-python: topics from the first to the last day."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonPartition
from kafka.admin import NewPartitions as PythonPartitions
from kafka.admin import NewTopic as PythonTopic
from kafka.errors import TopicAlreadyExistsError

from tests.support.api import describe, produce
from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually

TIMEOUT_SECONDS = 30.0
TIMEOUT_MS = 30_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data: Path = tmp_path_factory.mktemp("data")
    with running_broker(data) as broker:
        yield broker


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client


def is_gone(client: RawClient, topic: str) -> bool:
    return not describe(client, topic, allow_auto_topic_creation=False).partitions


def test_confluent_kafkas_admin_client(broker: BrokerProcess, client: RawClient) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = NewTopic("letters", 2, 1, config={"retention.ms": "500000"})
    admin.create_topics([wanted])["letters"].result(TIMEOUT_SECONDS)
    with pytest.raises(KafkaException, match="already exists"):
        admin.create_topics([wanted])["letters"].result(TIMEOUT_SECONDS)
    admin.create_partitions([NewPartitions("letters", 3)])["letters"].result(TIMEOUT_SECONDS)
    described = admin.describe_topics(TopicCollection(["letters"]))["letters"].result(
        TIMEOUT_SECONDS
    )
    assert [one.leader.id for one in described.partitions] == [0, 0, 0]
    assert [one.id for one in admin.describe_cluster().result(TIMEOUT_SECONDS).nodes] == [0]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "letters")
    [configs] = admin.describe_configs([resource]).values()
    assert configs.result(TIMEOUT_SECONDS)["retention.ms"].value == "500000"
    produce(client, "letters", make_batch(b"0", b"1", b"2"))
    first = TopicPartition("letters", 0)
    [deleted] = admin.delete_records([TopicPartition("letters", 0, 2)]).values()
    assert deleted.result(TIMEOUT_SECONDS).low_watermark == 2
    assert "letters" in admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    elected = admin.elect_leaders(ElectionType.PREFERRED, [first]).result(TIMEOUT_SECONDS)
    assert elected[first].name() == "ELECTION_NOT_NEEDED"
    admin.delete_topics(["letters"])["letters"].result(TIMEOUT_SECONDS)
    eventually(lambda: is_gone(client, "letters"))


def test_kafka_pythons_admin_client(broker: BrokerProcess, client: RawClient) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        wanted = PythonTopic("parcels", 2, 1, topic_configs={"retention.ms": "600000"})
        admin.create_topics([wanted], timeout_ms=TIMEOUT_MS)
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([wanted], timeout_ms=TIMEOUT_MS)
        admin.create_partitions({"parcels": PythonPartitions(3)}, timeout_ms=TIMEOUT_MS)
        [described] = admin.describe_topics(["parcels"])
        assert len(described["partitions"]) == 3
        assert "parcels" in admin.list_topics()
        produce(client, "parcels", make_batch(b"0", b"1", b"2"))
        first = PythonPartition("parcels", 0)
        deleted = admin.delete_records({first: 2}, timeout_ms=TIMEOUT_MS)
        assert deleted[first]["low_watermark"] == 2
        assert admin.describe_log_dirs()
        assert admin.list_partition_reassignments(timeout_ms=TIMEOUT_MS) == {}
        admin.delete_topics(["parcels"], timeout_ms=TIMEOUT_MS)
        eventually(lambda: is_gone(client, "parcels"))
    finally:
        admin.close()
