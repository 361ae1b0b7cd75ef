"""The control plane never waits behind data."""

import asyncio

from network.request import Request
from network.request_channel import Handler
from network.socket_server import ListenerEndpoint, NetworkLimits
from tests.unit.network.sockets import Client, echo, run, serving, until

DATA = ListenerEndpoint("DATA", "PLAINTEXT", "127.0.0.1", 0)
CONTROL = ListenerEndpoint("CONTROL", "PLAINTEXT", "127.0.0.1", 0)
BOTH = (DATA, CONTROL)


def blocking(gate: asyncio.Event, listener: str) -> Handler:
    async def wait(request: Request) -> None:
        if request.channel.listener_name == listener:
            await gate.wait()
        echo(request)

    return wait


def test_control_requests_are_served_while_all_workers_of_the_data_plane_are_blocked() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        limits = NetworkLimits(handler_workers=2, queued_requests=2, queued_request_bytes=14)
        async with serving(blocking(gate, "DATA"), limits, BOTH, control_plane="CONTROL") as server:
            stuck = [await Client.connect(server, "DATA") for _ in range(6)]
            for client in stuck:
                client.send(b"data")
            await until(lambda: len(server.request_channel) == 2)
            controller = await Client.connect(server, "CONTROL")
            for number in range(100):
                assert await controller.ask(b"order %d" % number) == b"order %d" % number
            assert server.request_channel.idle_workers == 0
            gate.set()
            assert [await one.receive() for one in stuck] == [b"data"] * 6

    run(scenario)


def test_the_control_plane_has_one_worker_and_a_queue_of_twenty() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        async with serving(
            blocking(gate, "CONTROL"), None, BOTH, control_plane="CONTROL"
        ) as server:
            assert server.control_channel is not None
            assert server.control_channel.workers == 1
            stuck = [await Client.connect(server, "CONTROL") for _ in range(25)]
            for client in stuck:
                client.send(b"order")
            await until(lambda: len(server.control_channel or ()) == 20)
            data = await Client.connect(server, "DATA")
            assert await data.ask(b"data") == b"data"
            gate.set()
            assert [await one.receive() for one in stuck] == [b"order"] * 25

    run(scenario)


def test_each_plane_has_processors_and_figures_of_its_own() -> None:
    async def scenario() -> None:
        limits = NetworkLimits(processors_per_listener=3)
        async with serving(echo, limits, BOTH, control_plane="CONTROL") as server:
            by_listener = [one.listener.name for one in server.processors]
            assert by_listener == ["DATA"] * 3 + ["CONTROL"]
            controller = await Client.connect(server, "CONTROL")
            await controller.ask(bytes([0, 4, 0, 0]))  # LeaderAndIsr
            totals = {
                dict(one.labels)["plane"]
                for one in server.collect()
                if one.name == "total_seconds" and ("api", "LEADER_AND_ISR") in one.labels
            }
            assert totals == {"control"}

    run(scenario)
