"""Handlers that stop, clients that are throttled, servers that stop: nothing piles up or leaks."""

import asyncio
import os
import socket

import pytest

from network.request import Request
from network.socket_server import NetworkLimits
from tests.unit.network.sockets import Client, echo, framed, run, serving, until

CLIENTS = 20
REQUESTS = 4000
SCRATCH = 128 << 10


def test_with_handlers_stopped_memory_stops_growing_and_all_is_answered_later() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def wait(request: Request) -> None:
            await gate.wait()
            echo(request)

        limits = NetworkLimits(handler_workers=2, queued_requests=10)
        async with serving(wait, limits) as server:
            clients = [await Client.connect(server) for _ in range(CLIENTS)]
            payloads = [b"%06d" % number + b"x" * 1000 for number in range(REQUESTS)]
            for client in clients:  # the kernel would take megabytes for each
                sock = client.writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SCRATCH)
                client.send(*payloads)

            def held() -> int:
                return sum(one.pending_bytes for each in server.processors for one in each.channels)

            await until(lambda: len(server.request_channel) == 10)
            first, second = -1, held()
            while first != second:
                await asyncio.sleep(0.1)
                first, second = second, held()
            assert held() <= CLIENTS * SCRATCH, "one scratch buffer for each connection"
            stuck = [client.writer.transport.get_write_buffer_size() for client in clients]
            assert min(stuck) > REQUESTS * 1000 / 2, "the rest stays with the clients"
            gate.set()
            for client in clients:
                for payload in payloads:
                    assert await client.receive() == payload

    run(scenario)


def test_a_throttled_connection_is_answered_at_once_and_heard_later() -> None:
    async def scenario() -> None:
        moments: list[float] = []
        loop = asyncio.get_running_loop()

        def throttle(request: Request) -> None:
            moments.append(loop.time())
            request.respond([framed(bytes(request.frame))], throttle_ms=300)

        async with serving(throttle) as server:
            slow, other = await Client.connect(server), await Client.connect(server)
            slow.send(b"one", b"two")
            assert await slow.receive() == b"one"
            assert await other.ask(b"not concerned") == b"not concerned"
            assert len(moments) == 2, "the second request of the throttled one waits"
            assert await slow.receive() == b"two"
            assert moments[2] - moments[0] >= 0.29
            assert server.counters("PLAINTEXT").throttles == 3

    run(scenario)


def test_workers_can_become_more_and_fewer_while_they_work() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        running = 0

        async def wait(request: Request) -> None:
            nonlocal running
            running += 1
            await gate.wait()
            running -= 1
            echo(request)

        async with serving(wait, NetworkLimits(handler_workers=2)) as server:
            clients = [await Client.connect(server) for _ in range(6)]
            for client in clients:
                client.send(b"x")
            await until(lambda: running == 2)
            server.resize_handlers(4)
            await until(lambda: running == 4)
            server.resize_handlers(1)
            gate.set()
            for client in clients:
                assert await client.receive() == b"x"
            await until(lambda: server.request_channel.idle_workers == 1)
            gate.clear()
            for client in clients:
                client.send(b"y")
            await until(lambda: running == 1)
            assert len(server.request_channel) == 5
            gate.set()
            for client in clients:
                assert await client.receive() == b"y"

    run(scenario)


def test_a_stopped_server_leaves_no_descriptor_and_no_task() -> None:
    async def scenario() -> None:
        async def work(request: Request) -> None:
            if request.frame == b"for ever":
                await asyncio.Event().wait()
            echo(request)

        descriptors, tasks = set(os.listdir("/proc/self/fd")), asyncio.all_tasks()
        async with serving(work) as server:
            clients = [await Client.connect(server) for _ in range(30)]
            for client in clients[:10]:
                assert await client.ask(b"answered") == b"answered"
            for client in clients[10:20]:
                client.writer.write(b"\0\0\0\x10half")
            for client in clients[20:]:
                client.send(b"for ever", b"never handled")
            await until(lambda: server.request_channel.idle_workers == 0)
            waiting = [await Client.connect(server) for _ in range(5)]
            await server.stop(grace_seconds=0.05)
            for client in [*clients, *waiting]:
                assert await client.is_closed_by_server()
                client.close()
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == tasks
        assert set(os.listdir("/proc/self/fd")) == descriptors

    run(scenario)


@pytest.mark.parametrize("grace", [0.0, 5.0])
def test_a_stop_takes_no_new_requests_of_busy_clients(grace: float) -> None:
    async def scenario() -> None:
        handled = 0

        def count(request: Request) -> None:
            nonlocal handled
            handled += 1
            echo(request)

        async with serving(count) as server:
            busy = await Client.connect(server)
            assert await busy.ask(b"before") == b"before"
            stopping = asyncio.create_task(server.stop(grace_seconds=grace))
            await asyncio.sleep(0)
            busy.send(*[b"after"] * 100)
            await asyncio.wait_for(stopping, 2)
            assert handled == 1
            assert await busy.is_closed_by_server()

    run(scenario)
