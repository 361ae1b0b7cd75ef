"""CreateTopics on a real broker: one scenario, many versions."""

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.support.api import create, describe
from tests.support.raw_client import RawClient


@pytest.mark.parametrize("version", range(6))
def test_create_topic_by_numbers_and_by_assignment(client: RawClient, version: int) -> None:
    by_number = CreatableTopic(name=f"numbers-{version}", num_partitions=2, replication_factor=1)
    assigned = CreatableTopic(
        name=f"assigned-{version}",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=[0]) for index in range(3)
        ],
    )
    for topic, partitions in ((by_number, 2), (assigned, 3)):
        result = create(client, topic, version)
        assert result.error_code == ErrorCode.NONE
        assert len(describe(client, topic.name).partitions) == partitions
        again = create(client, topic, version)
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (partitions, 1)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic(name="bad name", num_partitions=1, replication_factor=1), 17),
        (CreatableTopic(name="none", num_partitions=0, replication_factor=1), 37),
        (CreatableTopic(name="none", num_partitions=1, replication_factor=2), 38),
        (CreatableTopic(name="none", num_partitions=1, replication_factor=0), 38),
        (
            CreatableTopic(
                name="none",
                num_partitions=1,
                replication_factor=1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[0])],
            ),
            42,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=1, broker_ids=[0])],
            ),
            39,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[])],
            ),
            39,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="segment.bytes", value=None)],
            ),
            40,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="no.such", value="1")],
            ),
            40,
        ),
        (
            CreatableTopic(
                name="none",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="segment.bytes", value="few")],
            ),
            40,
        ),
    ],
)
def test_create_topic_refuses(client: RawClient, topic: CreatableTopic, code: int) -> None:
    result = create(client, topic)
    assert result.error_code == code
    assert result.error_message
    assert (result.num_partitions, result.configs) == (-1, [])


def test_create_topic_that_collides_or_is_named_twice(client: RawClient) -> None:
    first = CreatableTopic(name="a.b", num_partitions=1, replication_factor=1)
    assert create(client, first).error_code == ErrorCode.NONE
    second = CreatableTopic(name="a_b", num_partitions=1, replication_factor=1)
    assert create(client, second).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    twice = CreatableTopic(name="twice", num_partitions=1, replication_factor=1)
    response = client.ask(CreateTopicsRequest(topics=[twice, twice], timeout_ms=1000), 5)
    assert [one.error_code for one in response.topics] == [ErrorCode.INVALID_REQUEST] * 2


def test_validate_only_creates_nothing(client: RawClient) -> None:
    topic = CreatableTopic(name="checked", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=1000, validate_only=True)
    assert client.ask(request, 5).topics[0].error_code == ErrorCode.NONE
    described = describe(client, "checked", allow_auto_topic_creation=False)
    assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_create_without_time_to_wait_reports_a_time_out(client: RawClient) -> None:
    topic = CreatableTopic(name="hasty", num_partitions=1, replication_factor=1)
    assert create(client, topic, timeout_ms=0).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_created_topic_returns_its_settings_with_their_source(client: RawClient) -> None:
    topic = CreatableTopic(
        name="configured",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")],
    )
    result = create(client, topic)
    configs = {one.name: (one.value, one.config_source) for one in result.configs or ()}
    assert configs["cleanup.policy"] == ("compact", 1)
    assert configs["segment.bytes"] == ("100000", 4)
    assert configs["retention.ms"] == ("604800000", 5)
    assert configs["min.cleanable.dirty.ratio"] == ("0.5", 5)
    assert len(configs) == 26


def test_topic_whose_only_broker_is_not_there_times_out_but_stays(client: RawClient) -> None:
    topic = CreatableTopic(
        name="elsewhere",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[7])],
    )
    result = create(client, topic, timeout_ms=300)
    assert (result.error_code, result.num_partitions) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert describe(client, "elsewhere").error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert create(client, topic).error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("version", [4, 5])
def test_minus_one_stands_for_the_brokers_defaults(client: RawClient, version: int) -> None:
    topic = CreatableTopic(name=f"default-{version}", num_partitions=-1, replication_factor=-1)
    assert create(client, topic, version).error_code == ErrorCode.NONE
    partitions = describe(client, topic.name).partitions
    assert [one.replica_nodes for one in partitions] == [[0], [0]]
