"""kafka-topics and its relatives, from Apache Kafka 2.5.1 and 3.9.1, on three brokers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from network.protocol import ErrorCode
from tests.support.apache_kafka import RELEASES, require_apache_kafka
from tests.support.api import EARLIEST, describe, list_offset, produce
from tests.support.broker import BrokerProcess
from tests.support.brokers_on_zookeeper import running_brokers
from tests.support.kafka_tools import KafkaTools, tools
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually
from tests.support.zookeeper import private_chroot


class Site:
    """The brokers, a JVM with the tools of one release, and a client to look from."""

    def __init__(
        self, brokers: list[BrokerProcess], connect: str, kafka: KafkaTools, client: RawClient
    ) -> None:
        self.brokers = brokers
        self.kafka = kafka
        self.client = client
        self.at_brokers = ("--bootstrap-server", brokers[0].bootstrap)
        self.at_zookeeper = ("--zookeeper", connect)

    @property
    def is_old(self) -> bool:
        return self.kafka.version == "2.5.1"

    def topics(self, *arguments: str) -> str:
        return self.kafka.run("topics", *self.at_brokers, *arguments)

    def refused(self, tool: str, *arguments: str) -> str:
        """What a tool says that must not succeed."""
        status, result = self.kafka.attempt(tool, *self.at_brokers, *arguments)
        assert status == 1, result
        return result.output + result.errors

    def leader(self, topic: str) -> int:
        return describe(self.client, topic).partitions[0].leader_id

    def replicas(self, topic: str) -> list[int]:
        return describe(self.client, topic).partitions[0].replica_nodes


@pytest.fixture(scope="module", params=RELEASES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    kafka = require_apache_kafka(request.param)
    connect = private_chroot()
    with (
        running_brokers(
            connect,
            tmp_path_factory.mktemp("cluster"),
            3,
            {"auto.leader.rebalance.enable": "false"},
            log_dirs=("one", "two"),
        ) as brokers,
        tools(kafka) as jvm,
        RawClient(brokers[0].port) as client,
    ):
        yield Site(brokers, connect, jvm, client)


def test_topics_are_created_described_extended_and_deleted(site: Site) -> None:
    created = site.topics(
        *("--create", "--topic", "castle", "--partitions", "3", "--replication-factor", "2"),
        *("--config", "retention.ms=1000", "--config", "cleanup.policy=compact"),
    )
    assert "Created topic castle." in created
    site.topics("--create", "--topic", "village", "--replica-assignment", "2:1,0:2")
    assert set(site.topics("--list").split()) >= {"castle", "village"}
    described = site.topics("--describe", "--topic", "castle")
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 2\s", described)
    configs = re.search(r"Configs: (\S+)", described)
    assert configs is not None
    assert {"retention.ms=1000", "cleanup.policy=compact"} <= set(configs[1].split(","))
    village = site.topics("--describe", "--topic", "village")
    assert re.search(r"Partition: 0\s+Leader: 2\s+Replicas: 2,1\s+Isr: 2,1", village)
    assert re.search(r"Partition: 1\s+Leader: 0\s+Replicas: 0,2\s+Isr: 0,2", village)
    site.topics("--alter", "--topic", "castle", "--partitions", "5")
    assert "PartitionCount: 5" in site.topics("--describe", "--topic", "castle")
    assert site.topics("--describe", "--under-replicated-partitions") == ""
    site.topics("--delete", "--topic", "castle")
    eventually(lambda: "castle" not in site.topics("--list").split())


def test_topics_that_cannot_be_are_refused_with_the_brokers_reason(site: Site) -> None:
    site.topics("--create", "--topic", "there", "--partitions", "1", "--replication-factor", "1")
    wishes = {
        "already exists": ("--create", "--topic", "there"),
        "larger than available brokers": ("--create", "--topic", "t", "--replication-factor", "4"),
        "unknown topic setting": ("--create", "--topic", "t", "--config", "no.such=1"),
        "collides with": ("--create", "--topic", "there.is"),
        "which is more than": ("--alter", "--topic", "pair", "--partitions", "1"),
        "does not exist": ("--alter", "--topic", "never-was", "--partitions", "2"),
    }
    for name in ("there_is", "pair"):
        site.topics("--create", "--topic", name, "--partitions", "2", "--replication-factor", "1")
    for reason, wish in wishes.items():
        said = site.refused("topics", *wish)
        if "no.such" in wish[-1]:  # the tool knows the settings itself
            assert "no.such" in said
        else:
            assert reason in said, (wish, said)
    if not site.is_old:
        site.topics("--create", "--if-not-exists", "--topic", "there")


def test_records_are_deleted_and_log_directories_described(site: Site, tmp_path: Path) -> None:
    site.topics("--create", "--topic", "old", "--replica-assignment", "0")
    for value in (b"0", b"1", b"2"):
        assert produce(site.client, "old", make_batch(value)).error_code == ErrorCode.NONE
    wanted = [{"topic": "old", "partition": 0, "offset": 2}]
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"version": 1, "partitions": wanted}))
    deleted = site.kafka.run("delete-records", *site.at_brokers, "--offset-json-file", str(offsets))
    assert "low_watermark: 2" in deleted
    assert list_offset(site.client, "old", EARLIEST).offset == 2
    described = site.kafka.run(
        *("log-dirs", *site.at_brokers, "--describe"),
        *("--topic-list", "old", "--broker-list", "0,1"),
    )
    brokers = json.loads(described.splitlines()[-1])["brokers"]
    found = {
        broker["broker"]: [
            (one["partition"], one["offsetLag"], one["isFuture"])
            for directory in broker["logDirs"]
            for one in directory["partitions"]
        ]
        for broker in brokers
    }
    assert found == {0: [("old-0", 0, False)], 1: []}


def reassign(site: Site, *arguments: str) -> str:
    place = (*site.at_brokers, *site.at_zookeeper) if site.is_old else site.at_brokers
    return site.kafka.run("reassign-partitions", *place, *arguments)


def plan(path: Path, topic: str, replicas: list[int], log_dirs: list[str] | None = None) -> str:
    partition = {"topic": topic, "partition": 0, "replicas": replicas}
    if log_dirs is not None:
        partition["log_dirs"] = log_dirs
    path.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    return str(path)


def test_partitions_are_reassigned_and_preferred_leaders_elected(
    site: Site, tmp_path: Path
) -> None:
    site.topics("--create", "--topic", "moving", "--replica-assignment", "1:2")
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "moving"}]}))
    proposed = reassign(
        site,
        *("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2"),
    )
    assert "Proposed partition reassignment configuration" in proposed
    path = plan(tmp_path / "plan.json", "moving", [2, 1])
    begun = reassign(site, "--execute", "--reassignment-json-file", path)
    assert "uccessfully started" in begun
    eventually(lambda: site.replicas("moving") == [2, 1])
    eventually(lambda: "still in progress" not in verify(site, path))
    assert site.leader("moving") == 1
    election = ("--election-type", "preferred", "--topic", "moving", "--partition", "0")
    elected = site.kafka.run("leader-election", *site.at_brokers, *election)
    assert "uccessfully completed leader election" in elected
    assert site.leader("moving") == 2
    again = site.kafka.run("leader-election", *site.at_brokers, *election)
    assert "Valid replica already elected" in again
    everywhere = ("--election-type", "preferred", "--all-topic-partitions")
    site.kafka.run("leader-election", *site.at_brokers, *everywhere)


def verify(site: Site, path: str) -> str:
    return reassign(site, "--verify", "--reassignment-json-file", path)


def test_replicas_move_between_log_directories(site: Site, tmp_path: Path) -> None:
    site.topics("--create", "--topic", "luggage", "--replica-assignment", "0")
    produce(site.client, "luggage", make_batch(b"heavy"))
    home = site.brokers[0].data
    [found] = home.glob("*/luggage-0")
    target = home / ("two" if found.parent.name == "one" else "one")
    path = plan(tmp_path / "plan.json", "luggage", [0], [str(target)])
    reassign(site, "--execute", "--reassignment-json-file", path)
    eventually(lambda: (target / "luggage-0").is_dir())
    moved = "Reassignment of replica luggage-0-0 completed successfully"
    eventually(lambda: moved in verify(site, path))
    assert produce(site.client, "luggage", make_batch(b"more")).base_offset == 1


def test_moves_that_wait_are_listed_and_cancelled(site: Site, tmp_path: Path) -> None:
    if site.is_old:
        pytest.skip("kafka-reassign-partitions lists and cancels since 2.6")
    site.topics("--create", "--topic", "waiting", "--replica-assignment", "0")
    path = plan(tmp_path / "plan.json", "waiting", [1])
    reassign(site, "--execute", "--reassignment-json-file", path)
    assert "waiting-0: replicas: 1,0. adding: 1. removing: 0." in reassign(site, "--list")
    cancelled = reassign(site, "--cancel", "--reassignment-json-file", path)
    assert "uccessfully cancelled" in cancelled
    assert "No partition reassignments found" in reassign(site, "--list")
    eventually(lambda: site.replicas("waiting") == [0])


def test_old_tools_work_through_zookeeper(site: Site) -> None:
    if not site.is_old:
        pytest.skip("tools know ZooKeeper no more")
    at_zookeeper = ("topics", *site.at_zookeeper)
    site.kafka.run(
        *(*at_zookeeper, "--create", "--topic", "letter", "--partitions", "2"),
        *("--replication-factor", "3", "--config", "max.message.bytes=2000"),
    )
    eventually(lambda: len(describe(site.client, "letter").partitions) == 2)
    described = site.kafka.run(*at_zookeeper, "--describe", "--topic", "letter")
    assert "max.message.bytes=2000" in described
    site.kafka.run(*at_zookeeper, "--alter", "--topic", "letter", "--partitions", "4")
    eventually(lambda: len(describe(site.client, "letter").partitions) == 4)
    site.kafka.run(*at_zookeeper, "--delete", "--topic", "letter")
    eventually(lambda: "letter" not in site.topics("--list").split())
