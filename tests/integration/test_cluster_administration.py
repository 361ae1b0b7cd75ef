"""Elections, moves of partitions and leader epochs on three brokers; broker 0 is the controller."""

from collections.abc import Iterator

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from network.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from network.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from network.protocol.messages.delete_topics import DeleteTopicsRequest
from network.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from network.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from network.protocol.messages.metadata import MetadataRequest, MetadataResponsePartition
from network.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.api import create, describe, produce
from tests.support.broker import BrokerProcess
from tests.support.brokers_on_zookeeper import running_brokers
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually
from tests.support.zookeeper import private_chroot

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BrokerProcess]]:
    overrides = {
        "auto.leader.rebalance.enable": "false",
        "controlled.shutdown.retry.backoff.ms": "20",
    }
    with running_brokers(
        private_chroot(), tmp_path_factory.mktemp("cluster"), 3, overrides
    ) as started:
        yield started


@pytest.fixture
def client(brokers: list[BrokerProcess]) -> Iterator[RawClient]:
    with RawClient(brokers[0].port) as client:
        eventually(lambda: len(describe_brokers(client)) == 3)
        yield client


def describe_brokers(client: RawClient) -> list[int]:
    return [one.node_id for one in client.ask(MetadataRequest(topics=[]), 9).brokers]


def new_topic(client: RawClient, name: str, *replicas: int) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
    topic = CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    assert create(client, topic).error_code == ErrorCode.NONE


def state(client: RawClient, topic: str) -> MetadataResponsePartition:
    return describe(client, topic, allow_auto_topic_creation=False).partitions[0]


def elect(
    client: RawClient, topic: str | None, kind: int, *, partition: int = 0, version: int = 2
) -> dict[str, int]:
    """The code for each topic that there is a result for."""
    asked = None if topic is None else [TopicPartitions(topic=topic, partitions=[partition])]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=20_000)
    response = client.ask(request, version)
    assert response.error_code == ErrorCode.NONE
    return {
        one.topic: result.error_code
        for one in response.replica_election_results
        for result in one.partition_result
    }


def move(
    client: RawClient, topic: str, replicas: list[int] | None, partition: int = 0
) -> ErrorCode:
    wanted = ReassignablePartition(partition_index=partition, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[wanted])]
    )
    response = client.ask(request, 0)
    assert response.error_code == ErrorCode.NONE
    return ErrorCode(response.responses[0].partitions[0].error_code)


def moves(client: RawClient, topic: str | None = None) -> dict[str, tuple[list[int], ...]]:
    asked = None
    if topic is not None:
        asked = [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0])]
    response = client.ask(ListPartitionReassignmentsRequest(topics=asked), 0)
    assert response.error_code == ErrorCode.NONE
    return {
        one.name: (found.replicas, found.adding_replicas, found.removing_replicas)
        for one in response.topics
        for found in one.partitions
    }


def write(client: RawClient, topic: str, *values: bytes) -> None:
    """Write to a leader that may not have heard yet that it is one."""
    eventually(
        lambda: produce(client, topic, make_batch(*values), acks=1).error_code == ErrorCode.NONE
    )


def end_of_epoch(client: RawClient, topic: str, epoch: int, current: int) -> EpochEndOffset:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    result: EpochEndOffset = client.ask(request, 3).topics[0].partitions[0]
    return result


def test_brokers_that_are_not_the_controller_say_so(brokers: list[BrokerProcess]) -> None:
    code = ErrorCode.NOT_CONTROLLER
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    elections = ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic="t", partitions=[0])], timeout_ms=1000
    )
    with RawClient(brokers[1].port) as client:
        created = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
        assert created.topics[0].error_code == code
        deleted = client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
        assert deleted.responses[0].error_code == code
        more = CreatePartitionsTopic(name="t", count=2, assignments=None)
        added = client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=1000), 2)
        assert added.results[0].error_code == code
        elected = client.ask(elections, 2)
        assert elected.replica_election_results[0].partition_result[0].error_code == code
        assert client.ask(AlterPartitionReassignmentsRequest(), 0).error_code == code
        assert client.ask(ListPartitionReassignmentsRequest(), 0).error_code == code


@pytest.mark.parametrize("version", range(3))
def test_preferred_leader_is_elected(client: RawClient, version: int) -> None:
    topic = f"preferred-{version}"
    new_topic(client, topic, 1, 2)
    assert elect(client, topic, PREFERRED, version=version) == {
        topic: ErrorCode.ELECTION_NOT_NEEDED
    }
    assert move(client, topic, [2, 1]) == ErrorCode.NONE
    eventually(lambda: state(client, topic).replica_nodes == [2, 1])
    assert state(client, topic).leader_id == 1
    asked = None if version == 2 else topic
    assert elect(client, asked, PREFERRED, version=version) == {topic: ErrorCode.NONE}
    assert state(client, topic).leader_id == 2
    assert elect(client, None, PREFERRED, version=version) == {}


def test_elections_that_cannot_be_held_say_why(client: RawClient) -> None:
    new_topic(client, "led", 0)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(client, "led", PREFERRED, partition=1) == {"led": unknown}
    assert elect(client, "never-was", PREFERRED) == {"never-was": unknown}
    assert elect(client, "led", UNCLEAN) == {"led": ErrorCode.ELECTION_NOT_NEEDED}
    request = ElectLeadersRequest(election_type=7, topic_partitions=None, timeout_ms=1000)
    assert client.ask(request, 2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_partition_moves_are_listed_and_can_be_called_off(client: RawClient) -> None:
    new_topic(client, "moving", 1)
    assert moves(client) == {}
    assert move(client, "moving", None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert move(client, "moving", [2]) == ErrorCode.NONE
    # It is under way until the newcomer is in sync, which takes a follower that fetches.
    assert moves(client) == moves(client, "moving") == {"moving": ([2, 1], [2], [1])}
    assert moves(client, "led") == {}
    more = CreatePartitionsTopic(name="moving", count=2, assignments=None)
    added = client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=1000), 2)
    assert added.results[0].error_code == ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert move(client, "moving", None) == ErrorCode.NONE
    assert moves(client) == {}
    eventually(lambda: state(client, "moving").replica_nodes == [1])


@pytest.mark.parametrize("replicas", [[], [1, 1], [-1], [9]])
def test_moves_to_where_no_replica_can_be_are_refused(
    client: RawClient, replicas: list[int]
) -> None:
    topic = f"staying-{'-'.join(map(str, replicas))}"
    new_topic(client, topic, 1)
    assert move(client, topic, replicas) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(client, "never-was", [1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert state(client, topic).replica_nodes == [1]


def test_epochs_end_where_the_next_leader_began_and_elections_may_be_unclean(
    brokers: list[BrokerProcess], client: RawClient
) -> None:
    new_topic(client, "epochs", 1, 2)
    with RawClient(brokers[1].port) as first:
        write(first, "epochs", b"0", b"1")
    assert brokers[1].stop() == 0
    eventually(lambda: state(client, "epochs").leader_id == 2)
    latest = state(client, "epochs").leader_epoch
    assert latest > 0
    with RawClient(brokers[2].port) as second:
        write(second, "epochs", b"2")
        begun = end_of_epoch(second, "epochs", 0, current=latest)
        assert (begun.leader_epoch, begun.end_offset) == (0, 0)
        now = end_of_epoch(second, "epochs", latest, current=latest)
        assert (now.leader_epoch, now.end_offset) == (latest, 1)
        stale = end_of_epoch(second, "epochs", 0, current=0)
        assert stale.error_code == ErrorCode.FENCED_LEADER_EPOCH
    brokers[1].start()
    eventually(lambda: len(describe_brokers(client)) == 3)
    not_in_sync = elect(client, "epochs", PREFERRED)
    assert not_in_sync == {"epochs": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert brokers[2].stop() == 0
    eventually(lambda: state(client, "epochs").leader_id == -1)
    assert elect(client, "epochs", UNCLEAN) == {"epochs": ErrorCode.NONE}
    assert state(client, "epochs").leader_id == 1
    brokers[2].start()
    new_topic(client, "gone", 2)
    assert brokers[2].stop() == 0
    eventually(lambda: state(client, "gone").leader_id == -1)
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert elect(client, "gone", UNCLEAN) == {"gone": code}
    brokers[2].start()
