"""A broker obeys only the newest controller, and only what is meant for its present life."""

from collections.abc import Callable

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from network.protocol.messages.metadata import MetadataRequest
from network.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaTopicV1
from network.protocol.messages.update_metadata import UpdateMetadataRequest
from network.protocol.schema import Request
from tests.support.api import describe, new_topic
from tests.support.raw_client import RawClient

CURRENT_CONTROLLER_EPOCH = 1
UNKNOWN = -1


def take_leadership_away(topic: str, controller_epoch: int, broker_epoch: int) -> Request:
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=controller_epoch,
        leader=5,
        leader_epoch=9,
        isr=[5],
        partition_epoch=1,
        replicas=[5, 0],
    )
    return LeaderAndIsrRequest(
        controller_id=0,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[LeaderAndIsrTopicState(topic_name=topic, partition_states=[state])],
    )


def forget_all_brokers(_: str, controller_epoch: int, broker_epoch: int) -> Request:
    return UpdateMetadataRequest(
        controller_id=5, controller_epoch=controller_epoch, broker_epoch=broker_epoch
    )


def delete_partition(topic: str, controller_epoch: int, broker_epoch: int) -> Request:
    return StopReplicaRequest(
        controller_id=0,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        delete_partitions=True,
        topics=[StopReplicaTopicV1(name=topic, partition_indexes=[0])],
    )


MAKERS = [(take_leadership_away, 4), (forget_all_brokers, 6), (delete_partition, 2)]


@pytest.mark.parametrize(("make", "version"), MAKERS)
def test_stale_orders_are_refused_and_change_nothing(
    client: RawClient, make: Callable[[str, int, int], Request], version: int
) -> None:
    topic = new_topic(client)
    before = describe(client, topic)
    deposed = client.ask(make(topic, CURRENT_CONTROLLER_EPOCH - 1, UNKNOWN), version)
    assert deposed.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    earlier_life = client.ask(make(topic, CURRENT_CONTROLLER_EPOCH + 5, 0), version)
    assert earlier_life.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert describe(client, topic) == before
    assert client.ask(MetadataRequest(topics=[]), 9).controller_id == 0
    # The refused epoch was not remembered: orders of the present controller still count.
    assert new_topic(client)
