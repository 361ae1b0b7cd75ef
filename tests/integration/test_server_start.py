"""The start of a broker, step by step: its states, and what is left of a start that fails."""

import asyncio
import logging
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.errors import StartupError
from broker.server import BrokerServer
from broker.settings import load_settings
from broker.states import BrokerState
from controller.zookeeper import ZooKeeperClient

CLUSTER = "cluster-of-this-test-0"


class Broker:
    """A broker in this process, and the ZooKeeper beside it."""

    def __init__(self, directory: Path, connect: str) -> None:
        self.directory = directory
        self.connect = connect
        self.overrides = {
            "broker.id": "5",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": f"{directory}/one,{directory}/two",
            "zookeeper.connect": connect,
            "zookeeper.connection.timeout.ms": "5000",
            "offsets.topic.replication.factor": "1",
        }

    def server(self, **changes: str) -> BrokerServer:
        given = self.overrides | {name.replace("_", "."): text for name, text in changes.items()}
        pairs = [f"{name}={text}" for name, text in given.items()]
        return BrokerServer(load_settings(None, pairs, {}), on_fatal=lambda: None)

    async def zookeeper(self) -> ZooKeeperClient:
        client = ZooKeeperClient(self.connect)
        await client.connect()
        return client

    async def put(self, path: str, data: bytes, *, ephemeral: bool = False) -> ZooKeeperClient:
        """Write a node below the chroot; the session lives until the client is closed."""
        client = await self.zookeeper()
        await client.ensure_path(path.rpartition("/")[0])
        await client.create(path, data, ephemeral=ephemeral)
        return client


@pytest.fixture
def broker(tmp_path: Path, zookeeper_connect: str) -> Broker:
    return Broker(tmp_path, zookeeper_connect)


def test_states_follow_each_other_from_start_to_stop(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async def live() -> list[BrokerState]:
        server = broker.server()
        seen = [server.state]
        await server.start()
        seen.append(server.state)
        await server.stop()
        return [*seen, server.state]

    with caplog.at_level(logging.DEBUG, "broker.states"):
        seen = asyncio.run(live())
        first = states(caplog)
        caplog.clear()
        asyncio.run(live())
        second = states(caplog)
    stopped, steering = BrokerState.NOT_RUNNING, BrokerState.RUNNING_AS_CONTROLLER
    assert seen == [stopped, steering, stopped]
    # A directory without the mark of a clean stop counts as recovering, also an empty one.
    assert first == [1, 2, 3, 6, 7, 0]
    assert second == [1, 3, 6, 7, 0]


def states(caplog: pytest.LogCaptureFixture) -> list[int]:
    found = (re.search(r"Broker state: \w+ \((\d)\)", line) for line in caplog.messages)
    return [int(one[1]) for one in found if one]


def test_the_lines_that_operators_of_kafka_look_for_come_in_their_order(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async def live() -> None:
        server = broker.server()
        await server.start()
        await server.stop()

    with caplog.at_level(logging.INFO):
        asyncio.run(live())
    wanted = (
        "starting",
        f"Connecting to zookeeper on {broker.connect}",
        "Cluster ID = ",
        "Loading logs.",
        "Registered broker 5 at",
        "Awaiting socket connections on 127.0.0.1:",
        "started",
        "shutting down",
        "shut down completed",
    )
    positions = [
        next(at for at, line in enumerate(caplog.messages) if line.startswith(text))
        for text in wanted
    ]
    assert positions == sorted(positions)


def test_odd_settings_are_told_of_and_do_not_keep_a_broker_from_its_start(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async def live() -> None:
        for path in ("/config/brokers/5", "/config/brokers/<default>", "/config/topics/t"):
            await (await broker.put(path, b"no json")).close()
        server = broker.server(num_io_thread="3", zookeeper_sync_time_ms="5")
        await server.start()
        await server.stop()

    with caplog.at_level(logging.INFO):
        asyncio.run(live())
    told = [(record.levelname, record.message) for record in caplog.records]
    assert (
        "WARNING",
        "num.io.thread: unknown setting, ignored; did you mean num.io.threads? (--override)",
    ) in told
    idle = next(line for _, line in told if line.startswith("Recognised, but without effect"))
    assert "zookeeper.sync.time.ms" in idle
    assert "num.io.thread" not in idle
    ignored = [line for level, line in told if level == "ERROR"]
    assert {line.split(": ")[1] for line in ignored} == {
        "/config/brokers/5",
        "/config/brokers/<default>",
    }


@pytest.mark.parametrize(("reserved", "expected"), [("1000", 1001), ("7", 8)])
def test_an_id_is_generated_above_the_reserved_ones_and_kept(
    broker: Broker, reserved: str, expected: int
) -> None:
    async def registered() -> list[str]:
        server = broker.server(broker_id="-1", reserved_broker_max_id=reserved)
        await server.start()
        client = await broker.zookeeper()
        found = list(await client.children("/brokers/ids"))
        await client.close()
        await server.stop()
        return found

    assert asyncio.run(registered()) == [str(expected)]
    assert asyncio.run(registered()) == [str(expected)]


def test_an_id_must_be_set_where_none_may_be_generated(broker: Broker) -> None:
    with pytest.raises(StartupError, match=r"broker.id: -1: must be at least 0"):
        broker.server(broker_id="-1", broker_id_generation_enable="false")


Break = Callable[[Broker], object]


async def taken_port(broker: Broker) -> object:
    taken = socket.create_server(("127.0.0.1", 0))
    broker.overrides["listeners"] = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
    return taken


async def no_zookeeper(broker: Broker) -> object:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker.overrides["zookeeper.connect"] = f"127.0.0.1:{port}"
    broker.overrides["zookeeper.connection.timeout.ms"] = "300"
    return None


async def another_cluster(broker: Broker) -> object:
    write_meta(broker, "one", 5, "another")
    return await broker.put("/cluster/id", b'{"version":"1","id":"%s"}' % CLUSTER.encode())


async def another_broker_id(broker: Broker) -> object:
    write_meta(broker, "one", 6, CLUSTER)
    return await broker.put("/cluster/id", b'{"version":"1","id":"%s"}' % CLUSTER.encode())


async def two_broker_ids(broker: Broker) -> object:
    write_meta(broker, "one", 5, CLUSTER)
    write_meta(broker, "two", 6, CLUSTER)
    return await broker.put("/cluster/id", b'{"version":"1","id":"%s"}' % CLUSTER.encode())


async def partition_in_two_directories(broker: Broker) -> object:
    for name in ("one", "two"):
        log = broker.directory / name / "t-0"
        log.mkdir(parents=True)
        (log / f"{1:020}.log").touch()
    return None


async def registered_broker(broker: Broker) -> object:
    data = b'{"endpoints":["PLAINTEXT://h:1"],"version":4,"host":"h","port":1,"timestamp":"1"}'
    return await broker.put("/brokers/ids/5", data, ephemeral=True)


async def registered_address(broker: Broker) -> object:
    broker.overrides["advertised.listeners"] = "PLAINTEXT://example.org:7"
    data = (
        b'{"listener_security_protocol_map":{"A":"PLAINTEXT"},"endpoints":["A://example.org:7"],'
        b'"version":4,"host":"h","port":1,"timestamp":"1"}'
    )
    return await broker.put("/brokers/ids/6", data, ephemeral=True)


@pytest.mark.parametrize(
    ("breaking", "told"),
    [
        (no_zookeeper, r"no connection to ZooKeeper at .* within 300 ms"),
        (another_cluster, r"belongs to cluster another, ZooKeeper to cluster .*: point zookeeper"),
        (another_broker_id, r"broker.id is 5, but .* belongs to broker 6: set broker.id=6"),
        (two_broker_ids, r"belong to several brokers"),
        (partition_in_two_directories, r"t-0 lies in both"),
        (taken_port, r"listeners: 127.0.0.1:\d+: Address already in use; stop what"),
        (registered_address, r"example.org:7 is already registered by broker 6"),
        (registered_broker, r"a broker with id 5 is registered already"),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_nothing_running(
    broker: Broker, breaking: Break, told: str
) -> None:
    async def fail_and_mend() -> None:
        right = dict(broker.overrides)
        obstacle = await breaking(broker)  # type: ignore[misc]
        tasks = asyncio.all_tasks()
        server = broker.server()
        with pytest.raises(StartupError, match=told) as caught:
            await server.start()
        assert "\n" not in str(caught.value)
        assert server.state is BrokerState.NOT_RUNNING
        assert asyncio.all_tasks() == tasks
        await remove(obstacle)
        mend(broker)
        broker.overrides = right
        again = broker.server()
        await again.start()  # locks, ports and ephemeral nodes are all free
        assert again.state is BrokerState.RUNNING_AS_CONTROLLER
        await again.stop()

    asyncio.run(fail_and_mend())


async def remove(obstacle: object) -> None:
    if isinstance(obstacle, ZooKeeperClient):
        await obstacle.close()
    elif isinstance(obstacle, socket.socket):
        obstacle.close()


def mend(broker: Broker) -> None:
    for file in broker.directory.glob("*/meta.properties"):
        file.unlink()
    for log in (broker.directory / "two").glob("t-0*"):
        for file in log.iterdir():
            file.unlink()
        log.rmdir()


def write_meta(broker: Broker, name: str, broker_id: int, cluster: str) -> None:
    directory = broker.directory / name
    directory.mkdir(parents=True)
    (directory / "meta.properties").write_text(
        f"version=0\nbroker.id={broker_id}\ncluster.id={cluster}\n"
    )
