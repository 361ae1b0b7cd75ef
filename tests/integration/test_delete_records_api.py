"""DeleteRecords on a real broker: one scenario, many versions."""

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.api import EARLIEST, describe, fetch, list_offset, new_topic, produce, values
from tests.support.broker import BrokerProcess
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually


def delete(
    client: RawClient, topic: str, before: int, *, partition: int = 0, version: int = 1
) -> DeleteRecordsPartitionResult:
    wanted = DeleteRecordsPartition(partition_index=partition, offset=before)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=10_000
    )
    result: DeleteRecordsPartitionResult = client.ask(request, version).topics[0].partitions[0]
    return result


@pytest.mark.parametrize("version", range(2))
def test_deleted_records_are_gone_and_the_low_watermark_tells(
    client: RawClient, version: int
) -> None:
    topic = new_topic(client)
    for value in (b"0", b"1", b"2", b"3"):
        produce(client, topic, make_batch(value))
    result = delete(client, topic, 2, version=version)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 2)
    assert list_offset(client, topic, EARLIEST).offset == 2
    assert fetch(client, topic, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values(fetch(client, topic, 2)) == [b"2", b"3"]
    earlier = delete(client, topic, 1, version=version)
    assert (earlier.error_code, earlier.low_watermark) == (ErrorCode.NONE, 2)


def test_minus_one_deletes_all_that_is_committed(client: RawClient) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"0", b"1"))
    assert delete(client, topic, -1).low_watermark == 2
    produced = produce(client, topic, make_batch(b"2"))
    assert (produced.base_offset, produced.log_start_offset) == (2, 2)
    assert values(fetch(client, topic, 2)) == [b"2"]


@pytest.mark.parametrize("before", [3, -2])
def test_offsets_that_are_not_committed_are_refused(client: RawClient, before: int) -> None:
    topic = new_topic(client)
    produce(client, topic, make_batch(b"0", b"1"))
    result = delete(client, topic, before)
    assert (result.error_code, result.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert values(fetch(client, topic, 0)) == [b"0", b"1"]


def test_topics_that_are_only_compacted_keep_their_records(client: RawClient) -> None:
    compacted = new_topic(client, cleanup_policy="compact")
    assert delete(client, compacted, 0).error_code == ErrorCode.POLICY_VIOLATION
    both = new_topic(client, cleanup_policy="compact,delete")
    assert delete(client, both, 0).error_code == ErrorCode.NONE


def test_unknown_and_internal_partitions_are_refused(client: RawClient) -> None:
    topic = new_topic(client)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(client, topic, 0, partition=1).error_code == code
    assert delete(client, "never-was", 0).error_code == code
    offsets = "__consumer_offsets"
    eventually(lambda: describe(client, offsets).error_code == ErrorCode.NONE)
    assert delete(client, offsets, 0).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_deleted_records_stay_deleted_over_a_restart(broker: BrokerProcess) -> None:
    with RawClient(broker.port) as client:
        topic = new_topic(client)
        produce(client, topic, make_batch(b"0", b"1", b"2"))
        assert delete(client, topic, 2).low_watermark == 2
    assert broker.stop() == 0
    broker.start()
    with RawClient(broker.port) as client:
        assert list_offset(client, topic, EARLIEST).offset == 2
