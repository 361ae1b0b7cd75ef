"""Produce and Fetch on a real broker: one scenario, many versions."""

import pytest

from network.client import ConnectionEnded
from network.protocol import ErrorCode
from network.protocol.messages.fetch import FetchRequest
from network.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from storage.records import Codec, iter_batches
from tests.support.api import fetch, new_topic, produce, values
from tests.support.broker import BrokerProcess
from tests.support.raw_client import RawClient, make_batch, make_messages, read_records

TIMESTAMP = 1_700_000_000_000


@pytest.mark.parametrize("version", range(9))
def test_produce_assigns_offsets_in_order(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    for number in range(3):
        result = produce(client, topic, make_batch(b"a", b"b"), version=version, acks=1)
        assert (result.error_code, result.base_offset) == (ErrorCode.NONE, 2 * number)
        assert result.log_append_time_ms == -1
        assert result.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", range(4, 12))
def test_fetch_returns_what_was_produced(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"first", b"second"))
    produce(client, topic, make_batch(b"third", codec=Codec.GZIP))
    data = fetch(client, topic, 0, version=version)
    assert data.error_code == ErrorCode.NONE
    assert values(data) == [b"first", b"second", b"third"]
    assert (data.high_watermark, data.last_stable_offset) == (3, 3)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_clients_get_the_format_that_they_know(
    client: RawClient, version: int, codec: Codec
) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"first", b"second", codec=codec))
    produce(client, topic, make_batch(b"third", codec=codec))
    data = fetch(client, topic, 0, version=version)
    assert isinstance(data.records, memoryview)
    magic = 0 if version <= 1 else 1
    assert {batch.header.magic for batch in iter_batches(data.records)} == {magic}
    records = read_records(data.records)
    assert [record.value for record in records] == [b"first", b"second", b"third"]
    assert [record.offset for record in records] == [0, 1, 2]
    timestamp = -1 if magic == 0 else TIMESTAMP
    assert records[0].timestamp == timestamp
    if codec is Codec.NONE:
        inside = fetch(client, topic, 1, version=version)
        assert values(inside) == [b"second", b"third"]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_stored_in_the_topics_format(
    client: RawClient, version: int, magic: int
) -> None:
    topic = new_topic(client)
    messages = make_messages(magic, b"first", b"second", timestamp=TIMESTAMP)
    assert produce(client, topic, messages, version=version).base_offset == 0
    data = fetch(client, topic, 0)
    assert isinstance(data.records, memoryview)
    assert {batch.header.magic for batch in iter_batches(data.records)} == {2}
    assert values(data) == [b"first", b"second"]
    assert read_records(data.records)[0].timestamp == (-1 if magic == 0 else TIMESTAMP)


@pytest.mark.parametrize("magic", [0, 1])
def test_topic_of_an_older_format_keeps_it(client: RawClient, magic: int) -> None:
    version = {0: "0.9.0", 1: "0.10.0"}[magic]
    topic = new_topic(client, message_format_version=version)
    assert produce(client, topic, make_batch(b"new", b"client")).base_offset == 0
    data = fetch(client, topic, 0)
    assert isinstance(data.records, memoryview)
    assert {batch.header.magic for batch in iter_batches(data.records)} == {magic}
    assert values(data) == [b"new", b"client"]


def test_down_conversion_can_be_switched_off(client: RawClient) -> None:
    topic = new_topic(client, message_downconversion_enable="false")
    produce(client, topic, make_batch(b"x"))
    assert fetch(client, topic, 0, version=3).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert values(fetch(client, topic, 0, version=4)) == [b"x"]


def test_zstd_is_kept_from_clients_that_do_not_know_it(client: RawClient) -> None:
    topic = new_topic(client, compression_type="zstd")
    produce(client, topic, make_batch(b"x"))
    refused = fetch(client, topic, 0, version=9)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert values(fetch(client, topic, 0, version=10)) == [b"x"]


@pytest.mark.parametrize("version", range(3))
def test_hard_limits_of_old_fetches_cut_even_the_first_message(
    client: RawClient, version: int
) -> None:
    topic = new_topic(client, message_format_version="0.9.0")
    produce(client, topic, make_batch(b"x" * 1000))
    data = fetch(client, topic, 0, version=version, partition_max_bytes=100)
    assert isinstance(data.records, memoryview)
    assert len(data.records) == 100
    assert values(data) == []


def test_fetch_inside_a_batch_returns_that_batch(client: RawClient) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"0", b"1"))
    produce(client, topic, make_batch(b"2", b"3"))
    assert values(fetch(client, topic, 3)) == [b"2", b"3"]


def test_fetch_at_the_end_is_empty_and_past_it_out_of_range(client: RawClient) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"only"))
    at_end = fetch(client, topic, 1)
    assert (at_end.error_code, values(at_end)) == (ErrorCode.NONE, [])
    for offset in (2, -1):
        past = fetch(client, topic, offset)
        assert (past.error_code, past.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_fetch_returns_at_least_one_batch_and_no_more_than_asked(client: RawClient) -> None:
    topic = new_topic(client)
    for _ in range(4):
        produce(client, topic, make_batch(b"x" * 1000))
    assert values(fetch(client, topic, 0, max_bytes=1)) == [b"x" * 1000]
    assert values(fetch(client, topic, 0, partition_max_bytes=1)) == [b"x" * 1000]
    assert values(fetch(client, topic, 0, partition_max_bytes=2500)) == [b"x" * 1000] * 2


def test_fetch_reads_over_segments(client: RawClient) -> None:
    topic = new_topic(client, segment_bytes="2000")
    expected = [b"%d" % number * 400 for number in range(10)]
    for value in expected:
        produce(client, topic, make_batch(value))
    found: list[bytes | None] = []
    while len(found) < len(expected):
        found += values(fetch(client, topic, len(found)))
    assert found == expected


def test_fetch_waits_for_min_bytes_until_they_come(
    broker: BrokerProcess, client: RawClient
) -> None:
    topic = new_topic(client)
    empty = fetch(client, topic, 0, max_wait_ms=50)
    assert (empty.error_code, values(empty)) == (ErrorCode.NONE, [])
    with RawClient(broker.port) as producer:
        produce(producer, topic, make_batch(b"x" * 100))
        little = fetch(client, topic, 0, max_wait_ms=50, min_bytes=10_000)
        assert values(little) == [b"x" * 100]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (make_batch(b"x")[:-1], ErrorCode.INVALID_RECORD),
        (make_batch(b"x")[:-1] + b"y", ErrorCode.CORRUPT_MESSAGE),
        (make_batch(b"x") * 2, ErrorCode.INVALID_RECORD),
        (make_batch(b"x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=["nothing", "cut", "wrong crc", "two batches", "too large"],
)
def test_produce_refuses_and_leaves_the_log_untouched(
    client: RawClient, records: bytes, code: ErrorCode
) -> None:
    topic = new_topic(client, segment_bytes="10000000")
    assert produce(client, topic, make_batch(b"before")).error_code == ErrorCode.NONE
    assert produce(client, topic, records).error_code == code
    assert produce(client, topic, make_batch(b"after")).base_offset == 1
    assert values(fetch(client, topic, 0)) == [b"before", b"after"]


def test_produce_to_what_is_not_there(client: RawClient) -> None:
    unknown = produce(client, "nowhere", make_batch(b"x"))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = new_topic(client)
    missing = produce(client, topic, make_batch(b"x"), partition=7)
    assert (missing.error_code, missing.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_produce_with_odd_acks_is_refused(client: RawClient) -> None:
    topic = new_topic(client)
    assert produce(client, topic, make_batch(b"x"), acks=2).error_code == (
        ErrorCode.INVALID_REQUIRED_ACKS
    )


@pytest.mark.parametrize("version", range(3, 7))
def test_zstd_needs_a_client_that_knows_it(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    result = produce(client, topic, make_batch(b"x", codec=Codec.ZSTD), version=version)
    assert result.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_produce_without_acks_gets_no_answer_but_an_error_closes(
    broker: BrokerProcess, client: RawClient
) -> None:
    topic = new_topic(client)
    with RawClient(broker.port) as silent:
        silent.tell(_silent_produce(topic, make_batch(b"quiet")), 8)
        assert values(fetch(silent, topic, 0, max_wait_ms=5000)) == [b"quiet"]
        silent.tell(_silent_produce("nowhere", make_batch(b"lost")), 8)
        with pytest.raises(ConnectionEnded):
            fetch(silent, topic, 0)


def _silent_produce(topic: str, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
    return ProduceRequest(acks=0, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def test_fetch_of_an_unknown_session_is_refused(client: RawClient) -> None:
    request = FetchRequest(session_id=42, session_epoch=3)
    assert client.ask(request, 11).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
