"""Java's own consumers and tools: three releases in one group, and kafka-consumer-groups."""

import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.apache_kafka import ApacheKafka, require_apache_kafka
from tests.support.api import create_topic, produce
from tests.support.broker import BrokerProcess, running_broker
from tests.support.group_api import commit, committed, described, find_coordinator
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually

RELEASES = ("2.5.1", "3.9.1", "4.1.0")
PARTITIONS = 6
TOOL_OF = {
    "2.5.1": "kafka.admin.ConsumerGroupCommand",
    "3.9.1": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
CONSUMER = Path(__file__).with_name("GroupMember.java")
RECORD = re.compile(r"record (\d+) (\d+)")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with running_broker(tmp_path_factory.mktemp("data"), settings) as broker:
        yield broker


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client


class JavaMember:
    """A KafkaConsumer of some release in a process of its own."""

    def __init__(self, kafka: ApacheKafka, bootstrap: str, topic: str, group: str) -> None:
        self.records: list[tuple[int, int]] = []
        self.lines: list[str] = []
        command = [str(kafka.java), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += ["-cp", f"{kafka.libraries}/*", str(CONSUMER), bootstrap, topic, group]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def end(self) -> None:
        """Closing its input lets it commit, leave and end."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            found = RECORD.match(line)
            if found:
                self.records.append((int(found[1]), int(found[2])))


def test_consumers_of_three_releases_share_a_group(
    broker: BrokerProcess, client: RawClient
) -> None:
    releases = [require_apache_kafka(version) for version in RELEASES]
    topic, group = "java", "java-group"
    create_topic(client, topic, PARTITIONS)
    members: list[JavaMember] = []
    try:
        for number, kafka in enumerate(releases, 1):
            members.append(JavaMember(kafka, broker.bootstrap, topic, group))
            eventually(lambda number=number: _has_members(client, group, number), 60)  # type: ignore[misc]
        for number in range(60):
            produce(client, topic, make_batch(b"x"), partition=number % PARTITIONS)
        eventually(lambda: sum(len(one.records) for one in members) >= 60, 60)
        assert all(one.records for one in members), [one.lines[-5:] for one in members]
        members[0].end()
        eventually(lambda: _has_members(client, group, 2), 60)
        for number in range(60):
            produce(client, topic, make_batch(b"y"), partition=number % PARTITIONS)
        eventually(lambda: len(_all_records(members)) >= 120, 60)
    finally:
        for member in members:
            member.end()
    assert sorted(_all_records(members)) == [(p, o) for p in range(PARTITIONS) for o in range(20)]
    offsets = [committed(client, group, topic, partition=one) for one in range(PARTITIONS)]
    assert [one.committed_offset for one in offsets] == [20] * PARTITIONS


def _has_members(client: RawClient, group: str, number: int) -> bool:
    found = described(client, group)
    return (found.group_state, len(found.members)) == ("Stable", number)


def _all_records(members: list[JavaMember]) -> set[tuple[int, int]]:
    return {record for member in members for record in member.records}


@pytest.mark.parametrize("version", TOOL_OF)
def test_kafka_consumer_groups(broker: BrokerProcess, client: RawClient, version: str) -> None:
    kafka = require_apache_kafka(version)

    def tool(*arguments: str) -> str:
        result = kafka.run(TOOL_OF[version], "--bootstrap-server", broker.bootstrap, *arguments)
        return result.output + result.errors

    topic, group = f"tool-{version}", f"tool-group-{version}"
    create_topic(client, topic, 2)
    find_coordinator(client, group)
    for _ in range(10):
        produce(client, topic, make_batch(b"x"))
    commit(client, group, topic, 4)
    assert group in tool("--list").split()
    (line,) = [one for one in tool("--describe", "--group", group).splitlines() if topic in one]
    assert line.split()[:6] == [group, topic, "0", "4", "10", "6"]
    tool("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert committed(client, group, topic).committed_offset == 0
    tool(
        "--reset-offsets",
        "--group",
        group,
        "--topic",
        f"{topic}:0",
        "--to-offset",
        "7",
        "--execute",
    )
    assert committed(client, group, topic).committed_offset == 7
    state = tool("--describe", "--group", group, "--state")
    assert "Empty" in state
    tool("--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert committed(client, group, topic).committed_offset == -1
    assert "successful" in tool("--delete", "--group", group)
    assert group not in tool("--list").split()
