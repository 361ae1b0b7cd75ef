"""Fetch sessions on a real broker, in every version that has them."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from tests.support.api import PLENTY, new_topic, produce, values
from tests.support.broker import BrokerProcess
from tests.support.raw_client import RawClient, make_batch

VERSIONS = range(7, 12)


def ask(
    client: RawClient,
    version: int,
    session_id: int,
    epoch: int,
    wanted: Sequence[tuple[str, int, int]] = (),
    forgotten: Iterable[tuple[str, int]] = (),
    *,
    max_wait_ms: int = 0,
    max_bytes: int = PLENTY,
) -> Any:
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=PLENTY
                    )
                ],
            )
            for topic, partition, offset in wanted
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=topic, partitions=[partition]) for topic, partition in forgotten
        ],
    )
    return client.ask(request, version)


def told(response: Any) -> dict[int, PartitionData]:
    return {one.partition_index: one for topic in response.responses for one in topic.partitions}


@pytest.mark.parametrize("version", VERSIONS)
def test_session_tells_what_is_new_and_nothing_else(client: RawClient, version: int) -> None:
    topic = new_topic(client, partitions=3)
    opened = ask(client, version, 0, 0, [(topic, one, 0) for one in range(3)])
    session = opened.session_id
    assert session > 0
    assert opened.error_code == ErrorCode.NONE
    assert sorted(told(opened)) == [0, 1, 2]

    assert told(ask(client, version, session, 1)) == {}
    produce(client, topic, make_batch(b"news"), partition=1)
    news = told(ask(client, version, session, 2))
    assert list(news) == [1]
    assert values(news[1]) == [b"news"]

    read_on = ask(client, version, session, 3, [(topic, 1, 1)])
    assert (told(read_on), read_on.session_id) == ({}, session)

    produce(client, topic, make_batch(b"unwanted"), partition=2)
    assert told(ask(client, version, session, 4, forgotten=[(topic, 2)])) == {}
    again = told(ask(client, version, session, 5, [(topic, 2, 0)]))
    assert values(again[2]) == [b"unwanted"]


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_are_refused_as_kafka_refuses_them(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    session = ask(client, version, 0, 0, [(topic, 0, 0)]).session_id
    for session_id, epoch, code in (
        (session, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (session, -2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (session ^ 1, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ):
        refused = ask(client, version, session_id, epoch, [(topic, 0, 0)])
        assert (refused.error_code, refused.session_id) == (code, 0)
        assert refused.responses == []
    assert ask(client, version, session, 1).session_id == session


@pytest.mark.parametrize("version", VERSIONS)
def test_session_is_closed_on_request(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    session = ask(client, version, 0, 0, [(topic, 0, 0)]).session_id
    closed = ask(client, version, session, -1, [(topic, 0, 0)])
    assert (closed.session_id, list(told(closed))) == (0, [0])
    gone = ask(client, version, session, 1)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_incremental_fetch_waits_for_news(client: RawClient, broker: BrokerProcess) -> None:
    topic = new_topic(client, partitions=2)
    session = ask(client, 11, 0, 0, [(topic, 0, 0), (topic, 1, 0)]).session_id
    with RawClient(broker.port) as writer:
        produce(writer, topic, make_batch(b"late"), partition=1)
    news = told(ask(client, 11, session, 1, max_wait_ms=20_000))
    assert values(news[1]) == [b"late"]


def test_partition_that_was_deleted_is_told_once_more_as_an_error(client: RawClient) -> None:
    topic = new_topic(client)
    opened = ask(client, 11, 0, 0, [(topic, 0, 0), ("nowhere", 0, 0)])
    session = opened.session_id
    assert [one.error_code for topic in opened.responses for one in topic.partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    again = ask(client, 11, session, 1)
    assert [one.topic for one in again.responses] == ["nowhere"]


def test_small_fetches_serve_all_partitions_in_turn(client: RawClient) -> None:
    """Each answer has room for one batch; what was told goes to the end of the line (from the
    first incremental answer on, as in Kafka)."""
    topic = new_topic(client, partitions=3)
    for partition in range(3):
        produce(client, topic, make_batch(b"x" * 500), partition=partition)
    wanted = [(topic, one, 0) for one in range(3)]
    response = ask(client, 11, 0, 0, wanted, max_bytes=100)
    served: list[int] = []
    for epoch in range(1, 7):
        served += [one for one, data in told(response).items() if values(data)]
        response = ask(client, 11, response.session_id, epoch, max_bytes=100)
    assert served == [0, 0, 1, 2, 0, 1]


def test_session_shows_what_full_fetches_show(client: RawClient) -> None:
    topic = new_topic(client, partitions=4)
    offsets = dict.fromkeys(range(4), 0)
    response = ask(client, 11, 0, 0, [(topic, one, 0) for one in range(4)])
    merged: dict[int, list[bytes | None]] = {one: [] for one in range(4)}
    for epoch in range(1, 30):
        for written in range(epoch % 3):
            batch = make_batch(b"%d" % epoch, b"%d" % written)
            produce(client, topic, batch, partition=(epoch * 7 + written) % 4)
        advanced = []
        for partition, data in told(response).items():
            found = values(data)
            if found:
                merged[partition] += found
                offsets[partition] += len(found)
                advanced.append((topic, partition, offsets[partition]))
        response = ask(client, 11, response.session_id, epoch, advanced)
    for partition, data in told(response).items():
        merged[partition] += values(data)
    full = ask(client, 11, 0, -1, [(topic, one, 0) for one in range(4)])
    assert merged == {partition: values(data) for partition, data in told(full).items()}
