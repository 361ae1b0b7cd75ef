"""Requests on their way to brokers, and events on their way to the controller."""

import asyncio

import pytest

from controller import channels, events
from controller.channels import Channels
from controller.cluster import BrokerInfo
from controller.event_queue import EventQueue
from network.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from network.protocol.schema import Request, Response


def request(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=number)


def test_requests_arrive_in_order_whatever_fails_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "_RETRY_SECONDS", 0.0)

    async def scenario() -> None:
        arrived: list[int] = []
        answered: list[Response] = []
        all_answered = asyncio.Event()
        attempts = 0

        async def send(broker: BrokerInfo, sent: Request) -> Response:
            nonlocal attempts
            attempts += 1
            await asyncio.sleep(0)
            if attempts % 3:
                raise ConnectionResetError("on the way")
            assert isinstance(sent, UpdateMetadataRequest)
            arrived.append(sent.controller_id)
            return UpdateMetadataResponse()

        def note(response: Response) -> None:
            answered.append(response)
            if len(answered) == 20:
                all_answered.set()

        all_channels = Channels(send)
        all_channels.open(BrokerInfo(1, ()))
        for number in range(20):
            all_channels.put(1, request(number), note)
        await asyncio.wait_for(all_answered.wait(), 30)
        assert arrived == list(range(20))
        await all_channels.close_all()

    asyncio.run(scenario())


def test_broker_that_comes_back_gets_nothing_of_its_earlier_life() -> None:
    async def scenario() -> None:
        arrived: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        stuck = asyncio.Event()

        async def send(broker: BrokerInfo, sent: Request) -> Response:
            assert isinstance(sent, UpdateMetadataRequest)
            if broker.epoch == 1:
                stuck.set()
                await asyncio.Event().wait()
            arrived.put_nowait((broker.epoch, sent.controller_id))
            return UpdateMetadataResponse()

        all_channels = Channels(send)
        all_channels.open(BrokerInfo(1, (), epoch=1))
        all_channels.put(1, request(1))
        all_channels.put(1, request(2))
        await stuck.wait()
        all_channels.open(BrokerInfo(1, (), epoch=2))
        all_channels.put(1, request(3))
        assert await asyncio.wait_for(arrived.get(), 30) == (2, 3)
        assert arrived.empty()
        await all_channels.close_all()

    asyncio.run(scenario())


def test_equal_events_wait_only_once_and_in_order() -> None:
    async def scenario() -> None:
        queue = EventQueue()
        for event in (
            events.TopicsChanged(),
            events.PartitionsModified("a"),
            events.TopicsChanged(),
            events.PartitionsModified("b"),
            events.PartitionsModified("a"),
        ):
            queue.put(event)
        taken = [await queue.next() for _ in range(3)]
        assert taken == [
            events.TopicsChanged(),
            events.PartitionsModified("a"),
            events.PartitionsModified("b"),
        ]
        queue.put(events.TopicsChanged())  # it has happened again since
        assert queue.clear() == [events.TopicsChanged()]

    asyncio.run(scenario())


def test_answers_are_never_taken_for_one_another() -> None:
    async def scenario() -> None:
        queue = EventQueue()
        response = UpdateMetadataResponse()
        queue.put(events.UpdateMetadataAnswered(1, response))
        queue.put(events.UpdateMetadataAnswered(1, response))
        assert len(queue.clear()) == 2

    asyncio.run(scenario())
