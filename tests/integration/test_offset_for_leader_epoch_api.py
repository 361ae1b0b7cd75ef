"""OffsetForLeaderEpoch on a real broker: one scenario, many versions."""

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.api import new_topic, produce
from tests.support.raw_client import RawClient, make_batch


def end_of(
    client: RawClient,
    topic: str,
    epoch: int,
    *,
    partition: int = 0,
    current: int = -1,
    version: int = 3,
) -> EpochEndOffset:
    wanted = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    result: EpochEndOffset = client.ask(request, version).topics[0].partitions[0]
    return result


@pytest.mark.parametrize("version", range(4))
def test_current_epoch_ends_with_the_log(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"0", b"1"))
    found = end_of(client, topic, 0, version=version)
    assert (found.error_code, found.end_offset) == (ErrorCode.NONE, 2)
    assert found.leader_epoch == (0 if version >= 1 else -1)


def test_other_epochs_and_other_pictures_of_the_leader_are_told_apart(client: RawClient) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"0", b"1"))
    for epoch in (-1, 1):
        unknown = end_of(client, topic, epoch, current=0)
        assert (unknown.error_code, unknown.leader_epoch, unknown.end_offset) == (0, -1, -1)
    ahead = end_of(client, topic, 0, current=1)
    assert (ahead.error_code, ahead.end_offset) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)


def test_unknown_partitions_are_refused(client: RawClient) -> None:
    topic = new_topic(client)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end_of(client, topic, 0, partition=1).error_code == code
    assert end_of(client, "never-was", 0).error_code == code
