"""Starting, stopping and crashing, as an operator sees it."""

import asyncio
import json
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from controller.zookeeper import ZooKeeperClient
from network.protocol import ErrorCode
from tests.support.api import create_topic, describe, fetch, produce, values
from tests.support.broker import STARTED, BrokerProcess, running_broker
from tests.support.raw_client import RawClient, make_batch
from tests.support.zookeeper import shared_zookeeper

LEADER_PATIENCE_SECONDS = 30.0
CONNECTING = re.compile(r"Connecting to zookeeper on (\S+)")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path / "logs")
    yield broker
    broker.kill()


def write(broker: BrokerProcess, topic: str, *messages: bytes) -> None:
    with RawClient(broker.port) as client:
        create_topic(client, topic)
        for message in messages:
            assert produce(client, topic, make_batch(message)).error_code == ErrorCode.NONE


def read(broker: BrokerProcess, topic: str) -> list[bytes | None]:
    with RawClient(broker.port) as client:
        return values(fetch(client, topic, 0))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stops_cleanly_and_finds_everything_again(
    broker: BrokerProcess, number: signal.Signals
) -> None:
    broker.start()
    write(broker, "kept", b"one", b"two")
    broker.send_signal(number)
    assert broker.wait() == 0, broker.output
    assert (broker.data / ".kafka_cleanshutdown").exists()
    broker.start()
    assert not (broker.data / ".kafka_cleanshutdown").exists()
    assert read(broker, "kept") == [b"one", b"two"]


def test_starts_at_once_after_a_kill_though_its_session_lives_on(broker: BrokerProcess) -> None:
    """Registering would be refused while the killed broker's session holds /brokers/ids/0."""
    for round_number in range(3):
        broker.start()
        write(broker, f"kept-{round_number}", b"acknowledged")
        broker.kill()
    broker.start()
    for round_number in range(3):
        assert read(broker, f"kept-{round_number}") == [b"acknowledged"]


def test_killed_broker_leaves_no_zookeeper_behind(broker: BrokerProcess) -> None:
    broker.start()
    children = psutil.Process(broker.pid).children(recursive=True)
    assert children
    broker.kill()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_signal_during_the_start_ends_it(broker: BrokerProcess) -> None:
    broker.launch()
    broker.wait_for_line(re.compile(r"INFO starting"))
    children = psutil.Process(broker.pid).children(recursive=True)
    broker.send_signal(signal.SIGTERM)
    assert broker.wait() == 0, broker.output
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert not any(STARTED.search(line) for line in broker.lines)


def test_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = BrokerProcess(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
        assert_refuses(broker, rf"listeners: 127.0.0.1:{port}: Address already in use; stop what")


def test_unusable_directory_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    broker = BrokerProcess(tmp_path / "file" / "logs")
    assert_refuses(broker, r"No log directory can be used: .*: Not a directory; make it writable")


def test_directory_of_a_running_broker_is_told_in_one_line(broker: BrokerProcess) -> None:
    broker.start()
    assert_refuses(BrokerProcess(broker.data), r"is in use by another broker: stop that one")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("num.io.threads", "few", r"num\.io\.threads: few: must be a whole number"),
        ("listeners", "PLAINTEXT:9092", r"listeners: PLAINTEXT:9092: "),
        (
            "listeners",
            "SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            r"SASL listeners are not served",
        ),
    ],
)
def test_wrong_setting_is_told_in_one_line(
    tmp_path: Path, name: str, value: str, told: str
) -> None:
    assert_refuses(BrokerProcess(tmp_path, {name: value}), told)


def assert_refuses(broker: BrokerProcess, told: str) -> None:
    broker.launch()
    assert broker.wait() == 1
    assert len([line for line in broker.lines if re.search(told, line)]) == 1, broker.output
    assert "Traceback" not in broker.output


def test_wrong_cluster_is_refused_with_the_remedy(broker: BrokerProcess) -> None:
    broker.start()
    assert broker.stop() == 0
    meta = broker.data / "meta.properties"
    meta.write_text(re.sub(r"cluster\.id=.*", "cluster.id=another", meta.read_text()))
    assert_refuses(broker, r"belongs to cluster another, ZooKeeper to cluster .*: point")


def test_generated_broker_id_is_kept(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "logs", {"broker.id": "-1"})
    try:
        for _ in range(2):
            broker.start()
            assert any("Registered broker 1001 at" in line for line in broker.lines)
            assert broker.stop() == 0
    finally:
        broker.kill()


def test_registers_in_zookeeper_as_kafka_does(broker: BrokerProcess) -> None:
    broker.start()
    write(broker, "topic", b"x")
    connect = broker.wait_for_line(CONNECTING).group(1)
    paths = (
        "/brokers/ids/0",
        "/controller",
        "/controller_epoch",
        "/cluster/id",
        "/brokers/topics/topic",
        "/brokers/topics/topic/partitions/0/state",
        "/config/topics/topic",
    )
    found = {path: json.loads(data) for path, data in asyncio.run(read_znodes(connect, paths))}
    registered = found["/brokers/ids/0"]
    assert registered.pop("timestamp").isdigit()
    assert registered == {
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://127.0.0.1:{broker.port}"],
        "jmx_port": -1,
        "host": "127.0.0.1",
        "port": broker.port,
        "version": 4,
    }
    assert found["/controller"]["brokerid"] == 0
    assert found["/controller_epoch"] == 1
    assert found["/cluster/id"]["version"] == "1"
    assert found["/brokers/topics/topic"]["partitions"] == {"0": [0]}
    assert found["/brokers/topics/topic/partitions/0/state"] == {
        "controller_epoch": 1,
        "leader": 0,
        "version": 1,
        "leader_epoch": 0,
        "isr": [0],
    }
    assert found["/config/topics/topic"] == {"version": 1, "config": {}}


async def read_znodes(connect: str, paths: tuple[str, ...]) -> list[tuple[str, bytes]]:
    client = ZooKeeperClient(connect)
    await client.connect()
    try:
        return [(path, (await client.get(path)).data) for path in paths]
    finally:
        await client.close()


def test_two_brokers_share_an_ensemble_under_a_chroot(tmp_path: Path) -> None:
    ensemble = {"zookeeper.connect": f"{shared_zookeeper().connect_string}/some/where"}
    with (
        running_broker(tmp_path / "first", {"broker.id": "1", **ensemble}) as first,
        running_broker(tmp_path / "second", {"broker.id": "2", **ensemble}) as second,
    ):
        assert psutil.Process(first.pid).children() == []
        with RawClient(first.port) as client:
            create_topic(client, "spread", partitions=4)
        for broker in (first, second):
            assert set(leaders(broker, "spread")) == {1, 2}


def leaders(broker: BrokerProcess, topic: str) -> list[int]:
    with RawClient(broker.port) as client:
        for _ in range(200):
            described = describe(client, topic, allow_auto_topic_creation=False)
            if len(described.partitions) == 4:
                break
        return [one.leader_id for one in described.partitions]


def test_full_disk_stops_the_broker_and_costs_nothing_that_was_acknowledged(
    broker: BrokerProcess,
) -> None:
    broker.start()
    acknowledged = 0
    with RawClient(broker.port) as client:
        create_topic(client, "full")
        psutil.Process(broker.pid).rlimit(psutil.RLIMIT_FSIZE, (3_000_000, 3_000_000))
        for number in range(100):
            result = produce(client, "full", make_batch(b"%03d" % number * 30_000))
            if result.error_code != ErrorCode.NONE:
                assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                break
            acknowledged += 1
    assert 0 < acknowledged < 100
    assert broker.wait() == 1
    assert any("No log directory is left" in line for line in broker.lines)
    broker.start()
    expected = [b"%03d" % number * 30_000 for number in range(acknowledged)]
    with RawClient(broker.port) as client:
        found: list[bytes | None] = []
        while len(found) < acknowledged:
            found += values(fetch(client, "full", len(found)))
        assert found == expected


def test_flush_messages_is_honoured_before_the_acknowledgement(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"log.flush.interval.messages": "1"}) as broker:
        write(broker, "flushed", *[b"%d" % number for number in range(50)])
        assert len(read(broker, "flushed")) == 50
        broker.kill()


def test_a_directory_that_fails_costs_only_its_partitions(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    with running_broker(tmp_path, {"log.dirs": ",".join(map(str, paths))}) as broker:
        write(broker, "lost", b"before")
        write(broker, "kept", b"before")
        (bad,) = (path for path in paths if (path / "lost-0").is_dir())
        assert not (bad / "kept-0").exists()
        # No file may grow beyond this, which stands for a disk that fails.
        psutil.Process(broker.pid).rlimit(psutil.RLIMIT_FSIZE, (500_000, 500_000))
        with RawClient(broker.port) as client:
            large = make_batch(b"x" * 450_000)
            found = [produce(client, "lost", large).error_code for _ in range(3)]
            assert found == [ErrorCode.NONE, *[ErrorCode.KAFKA_STORAGE_ERROR] * 2]
            assert fetch(client, "lost", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(client, "kept", make_batch(b"after")).error_code == ErrorCode.NONE
        assert read(broker, "kept") == [b"before", b"after"]
        assert any(f"{bad} goes offline" in line for line in broker.lines)
        broker.stop()
        broker.start()
        assert read_once_led(broker, "kept") == [b"before", b"after"]
        assert read_once_led(broker, "lost") == [b"before", b"x" * 450_000], "all acknowledged"


def read_once_led(broker: BrokerProcess, topic: str) -> list[bytes | None]:
    """What a client reads that waits for the partition's leader."""
    deadline = time.monotonic() + LEADER_PATIENCE_SECONDS
    with RawClient(broker.port) as client:
        while True:
            found = fetch(client, topic, 0, max_wait_ms=100)
            if found.error_code == ErrorCode.NONE and values(found):
                return values(found)
            assert time.monotonic() < deadline, found.error_code
