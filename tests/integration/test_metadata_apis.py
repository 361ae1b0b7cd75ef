"""ApiVersions and Metadata on a real broker: one scenario, many versions."""

from pathlib import Path

import pytest

from broker import handlers
from broker.dispatch import REGISTRY
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.api_versions import ApiVersionsRequest
from network.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
)
from tests.support.api import describe, new_topic, produce
from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually


@pytest.mark.parametrize("version", range(4))
def test_api_versions_lists_exactly_what_is_served(client: RawClient, version: int) -> None:
    request = ApiVersionsRequest()
    if version == 3:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = client.ask(request, version)
    assert response.error_code == ErrorCode.NONE
    served = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
    handlers.register_all()
    assert served == {key: (one.min_version, one.max_version) for key, one in REGISTRY.items()}
    assert served[ApiKey.PRODUCE] == (0, 8)
    assert served[ApiKey.CREATE_TOPICS] == (0, 5)


@pytest.mark.parametrize("name", ["", "-x", "a b", "ä"])
def test_api_versions_refuses_a_malformed_software_name(client: RawClient, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert client.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(10))
def test_metadata_describes_broker_and_topic(
    broker: BrokerProcess, client: RawClient, version: int
) -> None:
    topic = new_topic(client, partitions=3)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    response = client.ask(request, version)
    node = response.brokers[0]
    assert (node.node_id, node.host, node.port) == (0, "127.0.0.1", broker.port)
    if version >= 1:
        assert response.controller_id == 0
    if version >= 2:
        assert response.cluster_id
    described = response.topics[0]
    assert (described.name, described.error_code) == (topic, ErrorCode.NONE)
    assert sorted(one.partition_index for one in described.partitions) == [0, 1, 2]
    for one in described.partitions:
        assert one.error_code == ErrorCode.NONE
        assert (one.leader_id, one.replica_nodes, one.isr_nodes) == (0, [0], [0])
        assert one.leader_epoch == (0 if version >= 7 else -1)


@pytest.mark.parametrize("version", range(10))
def test_metadata_of_all_topics(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    request = MetadataRequest(topics=[] if version == 0 else None)
    assert topic in [one.name for one in client.ask(request, version).topics]
    if version > 0:
        assert client.ask(MetadataRequest(topics=[]), version).topics == []


@pytest.mark.parametrize("version", range(10))
def test_metadata_creates_what_is_missing(client: RawClient, version: int) -> None:
    topic = f"auto-{version}"
    assert describe(client, topic, version).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    for _ in range(100):
        described = describe(client, topic, version)
        if described.error_code == ErrorCode.NONE:
            break
    assert len(described.partitions) == 2


@pytest.mark.parametrize("version", range(4, 10))
def test_metadata_creates_nothing_when_told_so(client: RawClient, version: int) -> None:
    for _ in range(2):
        described = describe(client, "unwanted", version, allow_auto_topic_creation=False)
        assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [0, 9])
def test_metadata_creates_internal_topics_with_settings_of_their_own(
    tmp_path: Path, version: int
) -> None:
    overrides = {
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.segment.bytes": "20000",
    }
    with running_broker(tmp_path, overrides) as broker, RawClient(broker.port) as client:
        offsets = "__consumer_offsets"
        assert describe(client, offsets, version).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        eventually(lambda: describe(client, offsets, version).error_code == ErrorCode.NONE)
        described = describe(client, offsets, 9)
        assert (len(described.partitions), described.is_internal) == (3, True)
        without_key = produce(client, offsets, make_batch(b"value"))
        assert without_key.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        transactions = describe(client, "__transaction_state", version)
        assert transactions.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_metadata_refuses_to_create_an_illegal_name(client: RawClient) -> None:
    assert describe(client, "no/good").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_metadata_tells_authorized_operations_when_asked(client: RawClient) -> None:
    topic = new_topic(client)
    assert describe(client, topic).topic_authorized_operations == -(2**31)
    asked = describe(client, topic, include_topic_authorized_operations=True)
    assert asked.topic_authorized_operations == 0b110111111000
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert client.ask(request, 9).cluster_authorized_operations == 0b1111110100000
