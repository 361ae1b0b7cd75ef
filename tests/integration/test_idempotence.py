"""Sequence numbers of idempotent producers on a real broker that gets killed."""

from network.protocol import ErrorCode
from storage.records import BatchBuilder
from storage.records.builder import ProducerInfo
from tests.support.api import fetch, new_topic, produce, values
from tests.support.broker import BrokerProcess
from tests.support.partitions import now_ms
from tests.support.raw_client import RawClient

PRODUCER = 7_000_000


def batch(sequence: int, count: int = 2, epoch: int = 0, producer_id: int = PRODUCER) -> bytes:
    builder = BatchBuilder(producer=ProducerInfo(producer_id, epoch, sequence))
    for number in range(count):
        builder.append(now_ms(), None, b"%d" % (sequence + number))
    return bytes(builder.build())


def send(client: RawClient, topic: str, data: bytes) -> tuple[ErrorCode, int]:
    answer = produce(client, topic, data)
    return ErrorCode(answer.error_code), answer.base_offset


def test_resent_batches_are_answered_with_their_first_offsets_also_after_a_kill(
    broker: BrokerProcess,
) -> None:
    with RawClient(broker.port) as client:
        topic = new_topic(client)
        for sequence in range(0, 20, 2):
            assert send(client, topic, batch(sequence)) == (ErrorCode.NONE, sequence)
        for sequence in range(10, 20, 2):
            assert send(client, topic, batch(sequence)) == (ErrorCode.NONE, sequence)
    broker.kill()
    broker.start()
    with RawClient(broker.port) as client:
        for sequence in range(10, 20, 2):
            assert send(client, topic, batch(sequence)) == (ErrorCode.NONE, sequence)
        gap = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert send(client, topic, batch(22)) == gap
        assert send(client, topic, batch(8)) == gap
        assert send(client, topic, batch(20)) == (ErrorCode.NONE, 20)
        assert values(fetch(client, topic, 20)) == [b"20", b"21"]
        assert send(client, topic, batch(0, epoch=1)) == (ErrorCode.NONE, 22)
        stale = (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        assert send(client, topic, batch(22, epoch=0)) == stale


def test_last_batch_is_known_again_after_a_clean_stop(broker: BrokerProcess) -> None:
    with RawClient(broker.port) as client:
        topic = new_topic(client)
        for sequence in (0, 2, 4):
            assert send(client, topic, batch(sequence)) == (ErrorCode.NONE, sequence)
    assert broker.stop() == 0
    broker.start()
    with RawClient(broker.port) as client:
        assert send(client, topic, batch(4)) == (ErrorCode.NONE, 4)
        assert send(client, topic, batch(6)) == (ErrorCode.NONE, 6)
        assert len(values(fetch(client, topic, 6))) == 2
