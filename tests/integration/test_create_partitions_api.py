"""CreatePartitions on a real broker: one scenario, many versions."""

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.support.api import describe, new_topic, produce
from tests.support.raw_client import RawClient, make_batch


def add(
    client: RawClient,
    *topics: CreatePartitionsTopic,
    version: int = 2,
    timeout_ms: int = 20_000,
    validate_only: bool = False,
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
    )
    results: list[CreatePartitionsTopicResult] = client.ask(request, version).results
    return results


def to(topic: str, count: int, assignments: list[list[int]] | None = None) -> CreatePartitionsTopic:
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=one) for one in assignments]
    return CreatePartitionsTopic(name=topic, count=count, assignments=given)


@pytest.mark.parametrize("version", range(3))
def test_added_partitions_can_be_written_to_at_once(client: RawClient, version: int) -> None:
    topic = new_topic(client, partitions=2)
    for wanted in (to(topic, 3), to(topic, 5, [[0], [0]])):
        [result] = add(client, wanted, version=version)
        assert (result.name, result.error_code) == (topic, ErrorCode.NONE)
        assert len(describe(client, topic).partitions) == wanted.count
        newest = produce(client, topic, make_batch(b"new"), partition=wanted.count - 1)
        assert (newest.error_code, newest.base_offset) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (-1, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[5]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0], [0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0, 0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_wrong_wishes_are_refused_with_a_reason(
    client: RawClient, count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    topic = new_topic(client, partitions=2)
    for validate_only in (True, False):
        [result] = add(client, to(topic, count, assignments), validate_only=validate_only)
        assert result.error_code == code
        assert result.error_message
    assert len(describe(client, topic).partitions) == 2


def test_unknown_and_repeated_topics_are_refused(client: RawClient) -> None:
    topic = new_topic(client)
    results = add(client, to(topic, 2), to("never-was", 2), to(topic, 3))
    codes = {one.name: one.error_code for one in results}
    assert codes == {
        topic: ErrorCode.INVALID_REQUEST,
        "never-was": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert len(describe(client, topic).partitions) == 1


def test_validation_alone_adds_nothing(client: RawClient) -> None:
    topic = new_topic(client)
    [result] = add(client, to(topic, 4), validate_only=True)
    assert result.error_code == ErrorCode.NONE
    assert len(describe(client, topic).partitions) == 1


def test_without_time_to_wait_partitions_are_added_all_the_same(client: RawClient) -> None:
    topic = new_topic(client)
    [result] = add(client, to(topic, 2), timeout_ms=0)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    [again] = add(client, to(topic, 3))
    assert again.error_code == ErrorCode.NONE
    assert len(describe(client, topic).partitions) == 3
