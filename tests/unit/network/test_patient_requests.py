"""Requests that come in crowds let others go first, and are all answered."""

import asyncio
from time import perf_counter

from network.request import Request
from network.request_channel import PATIENT_SLICE_SECONDS
from network.socket_server import NetworkLimits
from tests.unit.network.sockets import Client, echo, run, serving, until

PATIENT = b"\x00\x0bpatient"
URGENT = b"\x00\x00urgent"
PATIENT_APIS = {11}
CROWD = 40


def test_who_is_in_a_hurry_does_not_wait_for_a_crowd() -> None:
    async def scenario() -> None:
        order: list[bytes] = []

        def slow(request: Request) -> None:
            order.append(bytes(request.frame))
            if len(order) == 1:
                hurried.send(URGENT)
            ends = perf_counter() + PATIENT_SLICE_SECONDS
            while request.frame == PATIENT and perf_counter() < ends:
                pass
            echo(request)

        limits = NetworkLimits(queued_requests=3)  # a full backlog keeps nobody else out
        async with serving(slow, limits, patient_apis=PATIENT_APIS) as server:
            hurried = await Client.connect(server)
            crowd = [await Client.connect(server) for _ in range(CROWD)]
            for client in crowd:
                client.send(PATIENT)
            assert await hurried.receive() == URGENT
            for client in crowd:
                assert await client.receive() == PATIENT
        assert order.count(PATIENT) == CROWD
        assert order.index(URGENT) < CROWD / 4

    run(scenario)


def test_patient_requests_wait_for_a_worker_like_others() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def wait(request: Request) -> None:
            await gate.wait()
            echo(request)

        limits = NetworkLimits(handler_workers=2, queued_requests=3)
        async with serving(wait, limits, patient_apis=PATIENT_APIS) as server:
            crowd = [await Client.connect(server) for _ in range(CROWD)]
            for client in crowd:
                client.send(PATIENT, PATIENT)
            await until(lambda: len(server.request_channel) == 3)
            assert server.request_channel.idle_workers == 0
            gate.set()
            for client in crowd:
                assert [await client.receive(), await client.receive()] == [PATIENT, PATIENT]
            await until(lambda: server.request_channel.idle_workers == 2)

    run(scenario)
