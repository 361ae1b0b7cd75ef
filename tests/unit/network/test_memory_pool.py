"""queued.max.request.bytes: connections wait while requests hold all the memory they may."""

import asyncio

import pytest

from network.request import Request
from network.socket_server import NetworkLimits, SocketServer
from tests.unit.network.sockets import Client, echo, framed, run, serving, until

POOL = 1000


def limits(handler_workers: int = 8) -> NetworkLimits:
    return NetworkLimits(
        queued_request_bytes=POOL, max_request_size=POOL, handler_workers=handler_workers
    )


def used(server: SocketServer) -> int:
    assert server.memory_pool is not None
    return server.memory_pool.size - server.memory_pool.available


class Gate:
    """Holds requests back while their handlers are at work."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def __call__(self, request: Request) -> None:
        await self.event.wait()
        echo(request)


def test_under_pressure_connections_are_muted_and_go_on_when_it_eases() -> None:
    async def scenario() -> None:
        gate = Gate()
        async with serving(gate, limits(handler_workers=20)) as server:
            clients = [await Client.connect(server) for _ in range(10)]
            for client in clients:
                client.send(b"x" * 400)
            counters = server.counters("PLAINTEXT")
            await until(lambda: counters.memory_mutes >= 7)
            assert used(server) == 1200, "taken while some is left, so overdrawn by one request"
            gate.event.set()
            assert [await one.receive() for one in clients] == [b"x" * 400] * 10
            assert used(server) == 0

    run(scenario)


def test_a_frame_that_has_begun_is_read_to_its_end() -> None:
    async def scenario() -> None:
        gate = Gate()
        async with serving(gate, limits(handler_workers=20)) as server:
            slow, filler, late = [await Client.connect(server) for _ in range(3)]
            begun = framed(b"s" * 600)
            slow.writer.write(begun[:50])
            await until(lambda: used(server) == 600)
            filler.send(b"f" * 400)
            await until(lambda: used(server) == 1000)
            late.send(b"l")
            await until(lambda: server.counters("PLAINTEXT").memory_mutes == 1)
            slow.writer.write(begun[50:])
            await until(lambda: server.request_channel.idle_workers == 18)
            gate.event.set()
            assert await slow.receive() == b"s" * 600
            assert await late.receive() == b"l"

    run(scenario)


def test_connections_that_leave_give_their_memory_back() -> None:
    async def scenario() -> None:
        async with serving(echo, limits()) as server:
            leaving, waiting = await Client.connect(server), await Client.connect(server)
            leaving.writer.write(framed(b"x" * POOL)[:100])
            await until(lambda: used(server) == POOL)
            waiting.send(b"y")
            await until(lambda: server.counters("PLAINTEXT").memory_mutes == 1)
            leaving.close()
            assert await waiting.receive() == b"y"

    run(scenario)


def test_a_parked_request_holds_no_memory_of_the_pool() -> None:
    async def scenario() -> None:
        parked: list[Request] = []
        async with serving(parked.append, limits()) as server:
            client = await Client.connect(server)
            client.send(b"x" * POOL)
            await until(lambda: bool(parked))
            assert used(server) == 0
            assert not parked[0].frame
            parked[0].respond([framed(b"done")])
            assert await client.receive() == b"done"

    run(scenario)


@pytest.mark.parametrize("depth", [1, 50])
def test_pipelined_requests_are_charged_and_released_one_by_one(depth: int) -> None:
    async def scenario() -> None:
        async with serving(echo, limits()) as server:
            client = await Client.connect(server)
            payloads = [b"%d" % number * 20 for number in range(depth)]
            for _ in range(20):
                client.send(*payloads)
                assert [await client.receive() for _ in payloads] == payloads
            assert used(server) == 0

    run(scenario)
