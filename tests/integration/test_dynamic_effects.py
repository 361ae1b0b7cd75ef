"""What a change of configuration does to a running broker."""

import json
import re
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic
from network.protocol.messages.metadata import MetadataRequest
from storage.records import BatchBuilder
from tests.support.api import EARLIEST, create, create_topic, describe, list_offset, produce
from tests.support.broker import BrokerProcess, running_broker
from tests.support.configs import (
    BROKER,
    DELETE,
    SET,
    TOPIC,
    change,
    entries,
    eventually,
    read_znode,
    replace,
)
from tests.support.raw_client import RawClient, make_batch

CONNECTING = re.compile(r"Connecting to zookeeper on (\S+)")
OK = (ErrorCode.NONE, None)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {
        "log.retention.check.interval.ms": "50",
        "log.retention.hours": "-1",  # the records are of 2023
        "log.segment.bytes": "1000",
    }
    with running_broker(tmp_path_factory.mktemp("data"), settings) as broker:
        yield broker


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client
        for name in ("0", ""):
            assert replace(client, BROKER, name, {}) == OK


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def advertised(client: RawClient) -> list[tuple[str, int]]:
    return [(one.host, one.port) for one in client.ask(MetadataRequest(), 9).brokers]


def registered(broker: BrokerProcess) -> list[str]:
    connect = broker.wait_for_line(CONNECTING).group(1)
    found: list[str] = json.loads(read_znode(connect, "/brokers/ids/0"))["endpoints"]
    return found


def fill(client: RawClient, topic: str, batches: int = 5) -> None:
    for _ in range(batches):
        assert produce(client, topic, make_batch(bytes(600))).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("kind", "setting"), [(TOPIC, "retention.bytes"), (BROKER, "log.retention.bytes")]
)
def test_retention_follows_a_topics_settings_and_the_clusters(
    client: RawClient, kind: int, setting: str
) -> None:
    topic = f"retained-{kind}"
    create_topic(client, topic)
    fill(client, topic)
    assert list_offset(client, topic, EARLIEST).offset == 0
    assert change(client, kind, topic if kind == TOPIC else "", (setting, SET, "700")) == OK
    eventually(lambda: list_offset(client, topic, EARLIEST).offset >= 3)


def test_segments_roll_at_the_new_size(broker: BrokerProcess, client: RawClient) -> None:
    create_topic(client, "rolling")
    assert change(client, TOPIC, "rolling", ("segment.bytes", SET, "100000")) == OK
    eventually(lambda: "topics/rolling" in broker.output)
    fill(client, "rolling")
    assert len(list((broker.data / "rolling-0").glob("*.log"))) == 1
    assert change(client, TOPIC, "rolling", ("segment.bytes", DELETE, None)) == OK
    eventually(lambda: broker.output.count("topics/rolling") == 2)
    fill(client, "rolling")
    assert len(list((broker.data / "rolling-0").glob("*.log"))) > 3


def test_a_listener_comes_and_goes(broker: BrokerProcess, client: RawClient) -> None:
    port = free_port()
    both = f"PLAINTEXT://127.0.0.1:{broker.port},EXTRA://127.0.0.1:{port}"
    added = {
        "listeners": both,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT",
    }
    assert replace(client, BROKER, "0", added) == OK
    eventually(lambda: len(registered(broker)) == 2)
    with RawClient(port) as extra:
        eventually(lambda: advertised(extra) == [("127.0.0.1", port)])
        assert advertised(client) == [("127.0.0.1", broker.port)]
        assert change(client, BROKER, "0", ("listeners", DELETE, None)) == OK
        eventually(lambda: len(registered(broker)) == 1)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 5)


def test_another_address_is_advertised(broker: BrokerProcess, client: RawClient) -> None:
    other = f"PLAINTEXT://localhost:{broker.port}"
    assert change(client, BROKER, "0", ("advertised.listeners", SET, other)) == OK
    eventually(lambda: advertised(client) == [("localhost", broker.port)])
    assert registered(broker) == [other]
    assert change(client, BROKER, "0", ("advertised.listeners", DELETE, None)) == OK
    eventually(lambda: advertised(client) == [("127.0.0.1", broker.port)])


def test_an_existing_listener_keeps_its_protocol(client: RawClient) -> None:
    map_name = "listener.security.protocol.map"
    code, told = change(client, BROKER, "0", (map_name, SET, "PLAINTEXT:SSL"))
    assert code == ErrorCode.INVALID_REQUEST
    assert "existing listener PLAINTEXT cannot be updated" in (told or "")


def test_numbers_of_workers_follow_while_clients_go_on(client: RawClient) -> None:
    create_topic(client, "going-on")
    for name, counts in {
        "num.io.threads": ("16", "8", "4", "2", "1", "2", "4"),
        "num.network.threads": ("6", "3", "1", "2"),
    }.items():
        for count in counts:
            assert change(client, BROKER, "0", (name, SET, count)) == OK
            eventually(partial(has_value, client, name, count))
            fill(client, "going-on", 3)


def has_value(client: RawClient, name: str, value: str) -> bool:
    return entries(client, BROKER, "0", name)[name].value == value


def test_the_cleaner_goes_on_with_its_new_settings(
    broker: BrokerProcess, client: RawClient
) -> None:
    create_topic(client, "compacted", cleanup_policy="compact", segment_ms="1")
    for moment in range(3):  # the third segment is active, the others may be cleaned
        assert produce(client, "compacted", keyed_batch(moment)).error_code == ErrorCode.NONE
    cleaner = [("log.cleaner.threads", SET, "2"), ("log.cleaner.backoff.ms", SET, "10")]
    assert change(client, BROKER, "", *cleaner) == OK
    broker.wait_for_line(re.compile(r"Cleaned compacted-0 from offset 0 to"))


def keyed_batch(moment: int) -> bytes:
    builder = BatchBuilder()
    builder.append(1_700_000_000_000 + moment * 1000, b"key", b"%d" % moment)
    return bytes(builder.build())


def test_dynamic_settings_hold_again_after_a_restart(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    try:
        broker.start()
        with RawClient(broker.port) as client:
            create_topic(client, "small", max_message_bytes="500")
            assert change(client, BROKER, "", ("message.max.bytes", SET, "1000")) == OK
            own = [("num.io.threads", SET, "16"), ("log.retention.ms", SET, "5555")]
            assert change(client, BROKER, "0", *own) == OK
        assert broker.stop() == 0
        broker.start()
        with RawClient(broker.port) as client:
            found = entries(client, BROKER, "0")
            assert (found["num.io.threads"].value, found["num.io.threads"].config_source) == (
                "16",
                2,
            )
            assert found["message.max.bytes"].config_source == 3
            create_topic(client, "new")
            too_large = ErrorCode.MESSAGE_TOO_LARGE
            assert produce(client, "new", make_batch(bytes(2000))).error_code == too_large
            assert produce(client, "new", make_batch(bytes(700))).error_code == ErrorCode.NONE
            assert produce(client, "small", make_batch(bytes(700))).error_code == too_large
    finally:
        broker.kill()


def test_other_brokers_follow_the_clusters_defaults_and_topics(
    tmp_path: Path, zookeeper_connect: str
) -> None:
    ensemble = {"zookeeper.connect": zookeeper_connect}
    with (
        running_broker(tmp_path / "1", {"broker.id": "1", **ensemble}) as first,
        running_broker(tmp_path / "2", {"broker.id": "2", **ensemble}) as second,
        RawClient(first.port) as one,
        RawClient(second.port) as other,
    ):
        assert change(one, BROKER, "", ("message.max.bytes", SET, "1000")) == OK
        assert change(one, BROKER, "1", ("log.roll.ms", SET, "5555")) == OK
        name = "message.max.bytes"
        eventually(lambda: entries(other, BROKER, "2", name)[name].value == "1000")
        assert entries(other, BROKER, "2", "log.roll.ms")["log.roll.ms"].value is None
        code, told = change(other, BROKER, "1", ("log.roll.ms", SET, "1"))
        assert code == ErrorCode.INVALID_REQUEST
        assert "expected 2, but received 1" in (told or "")


def test_unclean_election_is_made_as_soon_as_it_is_allowed(
    tmp_path: Path, zookeeper_connect: str
) -> None:
    """Broker 2 is the last in sync and gone; broker 1 leads once the topic lets it."""
    common = {"zookeeper.connect": zookeeper_connect, "controlled.shutdown.enable": "false"}
    first = BrokerProcess(tmp_path / "1", {"broker.id": "1", **common})
    second = BrokerProcess(tmp_path / "2", {"broker.id": "2", **common})
    try:
        second.start()
        first.start()
        with RawClient(second.port) as client:
            assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])
            topic = CreatableTopic(
                name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment]
            )
            assert create(client, topic).error_code == ErrorCode.NONE
            assert first.stop() == 0
            eventually(lambda: leader(client, "t") == 2)
        assert second.stop() == 0
        first.start()
        with RawClient(first.port) as client:
            eventually(lambda: leader(client, "t") == -1)
            allowed = ("unclean.leader.election.enable", SET, "true")
            assert change(client, TOPIC, "t", allowed) == OK
            eventually(lambda: leader(client, "t") == 1)
    finally:
        first.kill()
        second.kill()


def leader(client: RawClient, topic: str) -> int | None:
    partitions = describe(client, topic, allow_auto_topic_creation=False).partitions
    return partitions[0].leader_id if partitions else None
