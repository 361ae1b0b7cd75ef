"""InitProducerId on a real broker: ids that nobody else gets, whatever happens to brokers."""

import asyncio
from pathlib import Path

import pytest

from controller.zookeeper import ZooKeeperClient
from network.protocol import ErrorCode
from network.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import RawClient
from tests.support.zookeeper import zookeeper_connect

__all__ = ["zookeeper_connect"]


def ask(
    client: RawClient,
    version: int = 3,
    *,
    transactional_id: str | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    response: InitProducerIdResponse = client.ask(request, version)
    return response


@pytest.mark.parametrize("version", range(4))
def test_producers_get_the_next_id_and_the_first_epoch(client: RawClient, version: int) -> None:
    first, second = ask(client, version), ask(client, version)
    assert (first.error_code, first.producer_epoch) == (ErrorCode.NONE, 0)
    assert second.producer_id == first.producer_id + 1


def test_producer_that_brings_an_id_gets_another(client: RawClient) -> None:
    given = ask(client).producer_id
    renewed = ask(client, producer_id=given, producer_epoch=0)
    assert (renewed.error_code, renewed.producer_id) == (ErrorCode.NONE, given + 1)


@pytest.mark.parametrize(
    ("transactional_id", "producer_id", "producer_epoch", "code"),
    [
        (None, 5, -1, ErrorCode.INVALID_REQUEST),
        (None, -1, 5, ErrorCode.INVALID_REQUEST),
        ("", -1, -1, ErrorCode.INVALID_REQUEST),
        ("t", -1, -1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_what_is_not_served_gets_no_id(
    client: RawClient,
    transactional_id: str | None,
    producer_id: int,
    producer_epoch: int,
    code: ErrorCode,
) -> None:
    response = ask(
        client,
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)


def test_no_id_is_given_twice_over_blocks_kills_and_brokers(
    tmp_path: Path, zookeeper_connect: str
) -> None:
    def on(broker_id: int) -> BrokerProcess:
        overrides = {"zookeeper.connect": zookeeper_connect, "broker.id": str(broker_id)}
        return BrokerProcess(tmp_path / str(broker_id), overrides)

    given: list[int] = []
    with on(1) as one, on(2) as two, RawClient(two.port) as at_two:
        for _ in range(2):
            with RawClient(one.port) as at_one:
                for _ in range(1100):
                    given += [ask(at_one).producer_id, ask(at_two).producer_id]
            one.kill()
            one.start()
    assert len(set(given)) == len(given) == 4400


def test_zookeeper_tells_the_block_as_kafka_does(tmp_path: Path, zookeeper_connect: str) -> None:
    with running_broker(tmp_path, {"zookeeper.connect": zookeeper_connect}):
        pass

    async def read() -> bytes:
        client = ZooKeeperClient(zookeeper_connect)
        await client.connect()
        try:
            return (await client.get("/latest_producer_id_block")).data
        finally:
            await client.close()

    expected = b'{"version":1,"broker":0,"block_start":"0","block_end":"999"}'
    assert asyncio.run(read()) == expected
