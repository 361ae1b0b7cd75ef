"""The socket server over real loopback sockets, with handlers that the tests control."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable

import pytest

from network.frame import SIZE_PREFIX
from network.request import Request
from network.socket_server import BindError, ListenerEndpoint, NetworkLimits, SocketServer
from tests.unit.network.sockets import Client, Region, echo, framed, run, serving


def test_pipelined_requests_are_answered_in_order() -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            client = await Client.connect(server)
            payloads = [b"request %d" % number for number in range(1000)]
            client.send(*payloads)
            assert [await client.receive() for _ in payloads] == payloads

    run(scenario)


def test_large_requests_and_responses_arrive_whole() -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            client = await Client.connect(server)
            payload = os.urandom(5 << 20)
            client.send(payload, b"after")
            assert await client.receive() == payload
            assert await client.receive() == b"after"

    run(scenario)


def test_connections_are_handed_to_processors_in_turn() -> None:
    async def scenario() -> None:
        limits = NetworkLimits(processors_per_listener=3)
        async with serving(echo, limits) as server:
            clients = [await Client.connect(server) for _ in range(6)]
            for client in clients:
                client.send(b"hello")
                assert await client.receive() == b"hello"
            assert [len(one.channels) for one in server.processors] == [2, 2, 2]

    run(scenario)


def test_one_request_is_in_flight_per_connection_and_others_go_on() -> None:
    async def scenario() -> None:
        parked: list[Request] = []

        def park_slow(request: Request) -> None:
            if request.frame == b"slow":
                parked.append(request)
            else:
                echo(request)

        async with serving(park_slow) as server:
            slow, other = await Client.connect(server), await Client.connect(server)
            slow.send(b"slow", b"behind")
            for _ in range(20):
                other.send(b"quick")
                assert await other.receive() == b"quick"
            assert len(parked) == 1
            parked[0].respond([framed(b"slow")])
            assert await slow.receive() == b"slow"
            assert await slow.receive() == b"behind"

    run(scenario)


def test_awaiting_handler_keeps_its_worker_and_the_queue_holds_the_rest() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        running: list[bytes] = []

        async def wait_for_gate(request: Request) -> None:
            running.append(bytes(request.frame))
            await gate.wait()
            echo(request)

        limits = NetworkLimits(handler_workers=2, queued_requests=3)
        async with serving(wait_for_gate, limits) as server:
            clients = [await Client.connect(server) for _ in range(8)]
            for number, client in enumerate(clients):
                client.send(b"%d" % number)
            while len(running) < 2 or len(server.request_channel) < 3:
                await asyncio.sleep(0.01)
            assert len(running) == 2
            assert len(server.request_channel) == 3
            gate.set()
            answers = [await client.receive() for client in clients]
            assert answers == [b"%d" % number for number in range(8)]
            assert server.request_channel.idle_workers == 2

    run(scenario)


def test_a_closed_connection_does_not_keep_others_waiting_for_room() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def wait_for_gate(request: Request) -> None:
            await gate.wait()
            echo(request)

        limits = NetworkLimits(handler_workers=1, queued_requests=1)
        async with serving(wait_for_gate, limits) as server:
            working, queued, leaving, waiting = [await Client.connect(server) for _ in range(4)]
            for client in (working, queued, leaving, waiting):
                client.send(b"x")
                await asyncio.sleep(0.05)
            leaving.writer.transport.abort()
            await asyncio.sleep(0.05)
            gate.set()
            for client in (working, queued, waiting):
                assert await client.receive() == b"x"

    run(scenario)


def test_no_response_lets_the_next_request_in() -> None:
    async def scenario() -> None:
        def answer_last(request: Request) -> None:
            request.respond([framed(b"done")] if request.frame == b"last" else [])

        async with serving(answer_last) as server:
            client = await Client.connect(server)
            client.send(*[b"fire and forget"] * 500, b"last")
            assert await client.receive() == b"done"

    run(scenario)


def test_requests_sent_before_the_peer_left_are_still_handled() -> None:
    async def scenario() -> None:
        handled = 0

        def count(request: Request) -> None:
            nonlocal handled
            handled += 1
            request.respond([])

        async with serving(count) as server:
            client = await Client.connect(server)
            client.send(*[b"fire and forget"] * 2000)
            await client.writer.drain()
            client.writer.close()
            while handled < 2000:
                await asyncio.sleep(0.01)

    run(scenario)


def test_file_regions_are_sent_between_buffers() -> None:
    content = os.urandom(3 << 20)

    async def scenario() -> None:
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.flush()

            def send_file(request: Request) -> None:
                region = Region(file, 100, len(content) - 200)
                request.respond([SIZE_PREFIX.pack(len(region) + 8), b"head", region, b"tail"])

            async with serving(send_file) as server:
                client = await Client.connect(server)
                client.send(b"a", b"b")
                expected = b"head" + content[100:-100] + b"tail"
                assert await client.receive() == expected
                assert await client.receive() == expected

    run(scenario)


def test_truncated_file_closes_the_connection_instead_of_lying() -> None:
    async def scenario() -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"short")
            file.flush()

            def send_file(request: Request) -> None:
                request.respond([SIZE_PREFIX.pack(100), Region(file, 0, 100)])

            async with serving(send_file) as server:
                client = await Client.connect(server)
                client.send(b"x")
                assert await client.reader.read() == SIZE_PREFIX.pack(100) + b"short"

    run(scenario)


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_forbidden_frame_size_closes_only_that_connection(size: int) -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            bad, good = await Client.connect(server), await Client.connect(server)
            bad.writer.write(SIZE_PREFIX.pack(size))
            assert await bad.is_closed_by_server()
            good.send(b"still here")
            assert await good.receive() == b"still here"

    run(scenario)


def test_failing_handler_closes_only_that_connection() -> None:
    async def scenario() -> None:
        async def fail_later() -> None:
            await asyncio.sleep(0)
            raise ValueError("later")

        def fail(request: Request) -> Awaitable[None] | None:
            if request.frame == b"now":
                raise ValueError("now")
            if request.frame == b"later":
                return fail_later()
            echo(request)
            return None

        async with serving(fail) as server:
            for bad in (b"now", b"later"):
                client = await Client.connect(server)
                client.send(bad)
                assert await client.is_closed_by_server()
            good = await Client.connect(server)
            good.send(b"fine")
            assert await good.receive() == b"fine"

    run(scenario)


def test_idle_connections_are_closed() -> None:
    async def scenario() -> None:
        async with serving(echo, NetworkLimits(max_idle_seconds=0.2)) as server:
            client = await Client.connect(server)
            assert await client.is_closed_by_server()

    run(scenario)


def test_peer_that_leaves_abandons_its_parked_request() -> None:
    async def scenario() -> None:
        abandoned = asyncio.Event()
        parked: list[Request] = []

        def park(request: Request) -> None:
            request.on_abandoned = abandoned.set
            parked.append(request)

        async with serving(park) as server:
            client = await Client.connect(server)
            client.send(b"wait")
            client.writer.close()
            await abandoned.wait()
            parked[0].respond([framed(b"too late")])

    run(scenario)


def test_taken_port_is_named() -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            port = server.ports["PLAINTEXT"]
            endpoint = ListenerEndpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", port)
            second = SocketServer([endpoint], NetworkLimits(), echo)
            with pytest.raises(BindError, match=f"127.0.0.1:{port}: Address already in use"):
                second.bind()

    run(scenario)


def test_stop_lets_what_is_in_flight_finish_within_the_grace() -> None:
    async def scenario() -> None:
        async def slowly(request: Request) -> None:
            await asyncio.sleep(0.1)
            echo(request)

        async with serving(slowly) as server:
            client = await Client.connect(server)
            client.send(b"in flight")
            while server.connection_count == 0 or server.request_channel.idle_workers == 8:
                await asyncio.sleep(0.005)
            await server.stop(grace_seconds=10)
            assert await client.receive() == b"in flight"
            assert await client.is_closed_by_server()

    run(scenario)
