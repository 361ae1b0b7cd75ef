"""Limits on connections: for the broker, for listeners, for addresses; also while it runs."""

import asyncio

import pytest

from network.connection_quotas import ConnectionLimits
from network.socket_server import ListenerEndpoint, NetworkLimits, SocketServer
from tests.unit.network.sockets import Client, echo, run, serving, until

CLIENTS = ListenerEndpoint("CLIENTS", "PLAINTEXT", "127.0.0.1", 0)
BROKERS = ListenerEndpoint("BROKERS", "PLAINTEXT", "127.0.0.1", 0)
BOTH = (CLIENTS, BROKERS)


def limited(**limits: object) -> NetworkLimits:
    return NetworkLimits(connections=ConnectionLimits(**limits))  # type: ignore[arg-type]


async def connected(server: SocketServer, listener: str, number: int) -> list[Client]:
    clients = []
    for _ in range(number):
        client = await Client.connect(server, listener)
        assert await client.ask(b"hello") == b"hello"
        clients.append(client)
    return clients


async def is_served(client: Client) -> bool:
    try:
        return await asyncio.wait_for(client.ask(b"?"), 0.3) == b"?"
    except TimeoutError:
        return False


def test_an_address_with_its_share_is_refused_and_others_are_not() -> None:
    async def scenario() -> None:
        async with serving(echo, limited(per_address=2)) as server:
            first = (await connected(server, "PLAINTEXT", 2))[0]
            third = await Client.connect(server)
            assert await third.is_closed_by_server()
            elsewhere = await Client.connect(server, host="127.0.0.2")
            assert await elsewhere.ask(b"hi") == b"hi"
            assert server.counters("PLAINTEXT").refused == 1
            first.close()
            await until(lambda: server.quotas.of_address("127.0.0.1") == 1)
            _kept = await connected(server, "PLAINTEXT", 1)

    run(scenario)


def test_overrides_replace_the_limit_of_their_address() -> None:
    async def scenario() -> None:
        limits = limited(per_address=1, by_address={"127.0.0.1": 3})
        async with serving(echo, limits) as server:
            _kept = await connected(server, "PLAINTEXT", 3)
            assert await (await Client.connect(server)).is_closed_by_server()
            _there = await Client.connect(server, host="127.0.0.2")
            assert await (await Client.connect(server, host="127.0.0.2")).is_closed_by_server()

    run(scenario)


@pytest.mark.parametrize("limits", [{"total": 2}, {"by_listener": {"PLAINTEXT": 2}}])
def test_newcomers_wait_for_a_slot(limits: dict[str, object]) -> None:
    async def scenario() -> None:
        async with serving(echo, limited(**limits)) as server:
            first, _second = await connected(server, "PLAINTEXT", 2)
            third = await Client.connect(server)
            third.send(b"in time")
            await until(lambda: server.counters("PLAINTEXT").waited > 0)
            assert server.connection_count == 2
            first.close()
            assert await third.receive() == b"in time"

    run(scenario)


def test_a_raised_limit_lets_those_in_who_wait() -> None:
    async def scenario() -> None:
        async with serving(echo, limited(total=1)) as server:
            _kept = await connected(server, "PLAINTEXT", 1)
            second = await Client.connect(server)
            assert not await is_served(second)
            server.update_limits(ConnectionLimits(total=2))
            assert await second.receive() == b"?"

    run(scenario)


def test_the_listener_between_brokers_displaces_the_least_recently_used_of_others() -> None:
    async def scenario() -> None:
        async with serving(echo, limited(total=3), BOTH, inter_broker="BROKERS") as server:
            clients = await connected(server, "CLIENTS", 3)
            await asyncio.sleep(0.01)
            for one in (clients[0], clients[2]):
                assert await one.ask(b"used") == b"used"
            broker = (await connected(server, "BROKERS", 1))[0]
            assert await clients[1].is_closed_by_server()
            assert await clients[0].ask(b"stays") == b"stays"
            assert server.counters("CLIENTS").evicted == 1
            assert server.quotas.total == 3
            newcomer = await Client.connect(server, "CLIENTS")
            assert not await is_served(newcomer)
            broker.close()
            assert await newcomer.receive() == b"?"

    run(scenario)


def test_connections_between_brokers_are_admitted_where_there_is_nobody_to_displace() -> None:
    async def scenario() -> None:
        async with serving(echo, limited(total=1), BOTH, inter_broker="BROKERS") as server:
            _kept = await connected(server, "BROKERS", 3)
            assert server.quotas.total == 3

    run(scenario)


def test_a_limit_of_its_own_holds_for_the_listener_between_brokers_too() -> None:
    async def scenario() -> None:
        limits = limited(by_listener={"BROKERS": 1})
        async with serving(echo, limits, BOTH, inter_broker="BROKERS") as server:
            _kept = await connected(server, "BROKERS", 1)
            assert not await is_served(await Client.connect(server, "BROKERS"))
            _kept = await connected(server, "CLIENTS", 2)

    run(scenario)


def test_the_only_listener_is_not_protected() -> None:
    async def scenario() -> None:
        async with serving(echo, limited(total=1), inter_broker="PLAINTEXT") as server:
            _kept = await connected(server, "PLAINTEXT", 1)
            assert not await is_served(await Client.connect(server))

    run(scenario)


def test_a_lowered_limit_closes_the_least_recently_used() -> None:
    async def scenario() -> None:
        async with serving(echo) as server:
            clients = await connected(server, "PLAINTEXT", 4)
            await asyncio.sleep(0.01)
            assert await clients[0].ask(b"used") == b"used"
            server.update_limits(ConnectionLimits(total=2))
            assert server.connection_count == 2
            assert await clients[0].ask(b"stays") == b"stays"
            assert await clients[1].is_closed_by_server()

    run(scenario)


def test_connect_and_close_storms_leave_nothing_behind() -> None:
    async def scenario() -> None:
        async with serving(echo, limited(per_address=50)) as server:
            for _ in range(20):
                storm = [await Client.connect(server) for _ in range(60)]
                for one in storm:
                    one.close()
            await until(lambda: server.quotas.total == 0)
            _kept = await connected(server, "PLAINTEXT", 50)
            assert server.connection_count == 50

    run(scenario)


def test_processors_and_listeners_come_and_go_while_it_runs() -> None:
    async def scenario() -> None:
        async with serving(echo, NetworkLimits(processors_per_listener=2)) as server:
            await server.resize_processors(4)
            clients = await connected(server, "PLAINTEXT", 8)
            assert [len(one.channels) for one in server.processors] == [2, 2, 2, 2]
            await server.resize_processors(1)
            assert server.connection_count == 2
            assert await clients[0].ask(b"stays") == b"stays"
            assert await clients[1].is_closed_by_server()
            server.add_listener(ListenerEndpoint("NEW", "PLAINTEXT", "127.0.0.1", 0))
            on_new = (await connected(server, "NEW", 1))[0]
            await server.remove_listener("NEW")
            assert await on_new.is_closed_by_server()
            assert await clients[0].ask(b"stays") == b"stays"

    run(scenario)
