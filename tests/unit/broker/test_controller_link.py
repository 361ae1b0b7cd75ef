"""The way between a controller and brokers: another one's that is silent, and this one itself."""

import asyncio

import pytest

from broker import handlers
from broker.controller_link import ControllerLink
from broker.services import Services
from controller.cluster import BrokerInfo, Endpoint
from network.protocol import ErrorCode
from network.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from network.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

ORDER = UpdateMetadataRequest(controller_id=0, controller_epoch=1)


def broker_at(port: int, number: int = 1) -> BrokerInfo:
    return BrokerInfo(number, (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", port),), epoch=1)


def link_of(broker_id: int = 0, timeout_seconds: float = 10.0) -> ControllerLink:
    handlers.register_all()
    return ControllerLink(broker_id, ["PLAINTEXT"], timeout_seconds, {})


def test_silent_broker_is_given_up_and_spoken_to_anew() -> None:
    connections: list[asyncio.StreamWriter] = []

    async def take_and_say_nothing(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connections.append(writer)
        while await reader.read(4096):
            continue
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(take_and_say_nothing, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        link = link_of(timeout_seconds=0.05)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await link.send(broker_at(port), ORDER)
        assert len(connections) == 2
        await link.close()
        server.close()

    asyncio.run(scenario())


def test_broker_without_the_listener_is_out_of_reach() -> None:
    endpoint = Endpoint("OTHER", "PLAINTEXT", "127.0.0.1", 1)
    with pytest.raises(ConnectionError):
        asyncio.run(link_of().send(BrokerInfo(1, (endpoint,)), ORDER))


def test_bug_met_by_an_order_to_itself_is_answered_not_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    link = link_of(broker_id=1)
    link.serve(Services.__new__(Services))  # nothing of which is there
    answer = asyncio.run(link.send(broker_at(0), ORDER))
    assert answer == UpdateMetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    stopped = asyncio.run(link.send(broker_at(0), StopReplicaRequest(controller_id=0)))
    assert stopped == StopReplicaResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert "Bug in UPDATE_METADATA" in caplog.text
