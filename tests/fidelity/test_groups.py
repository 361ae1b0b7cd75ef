"""`__consumer_offsets` goes from Barnabas to Apache Kafka and back: each serves what the other
has written."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.apache_kafka import ApacheKafka, KafkaBroker, require_apache_kafka
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually

TOPIC = "castle"
PARTITIONS = 3
TIMEOUT_SECONDS = 30.0
GROUPS_TOPIC_PARTITIONS = "4"
NOT_LOADED_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)

Answer = TypeVar("Answer")


@pytest.fixture(scope="module")
def kafka() -> ApacheKafka:
    return require_apache_kafka("2.5.1")


@pytest.fixture
def zookeeper(kafka: ApacheKafka, tmp_path: Path) -> Iterator[str]:
    with kafka.zookeeper(tmp_path / "zookeeper") as server:
        yield server.connect


def ours(zookeeper: str, data: Path) -> BrokerProcess:
    return BrokerProcess(
        data,
        {
            "zookeeper.connect": zookeeper,
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": GROUPS_TOPIC_PARTITIONS,
        },
    )


def theirs(kafka: ApacheKafka, zookeeper: str, data: Path, files: Path) -> KafkaBroker:
    settings = {"log.dirs": str(data), "offsets.topic.num.partitions": GROUPS_TOPIC_PARTITIONS}
    return KafkaBroker(kafka, files, zookeeper, settings)


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(TIMEOUT_SECONDS)


def member(bootstrap: str, group: str, **more: str) -> Consumer:
    """A member that has been given its partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **more,
        }
    )
    consumer.subscribe([TOPIC])
    eventually(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))
    return consumer


def commit(bootstrap: str, group: str, offsets: Mapping[int, int]) -> None:
    consumer = member(bootstrap, group)
    try:
        consumer.commit(
            offsets=[
                TopicPartition(TOPIC, one, offset, metadata=f"{group} {offset}")
                for one, offset in offsets.items()
            ],
            asynchronous=False,
        )
    finally:
        consumer.close()


def once_loaded(ask: Callable[[], Answer]) -> Answer:
    """The answer of a coordinator that may still be reading its topic: a broker that has just
    started serves before it has."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in NOT_LOADED_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def committed(bootstrap: str, group: str) -> dict[int, tuple[int, str | None]]:
    """Offsets and metadata by partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    request = [ConsumerGroupTopicPartitions(group)]
    found = once_loaded(
        lambda: admin.list_consumer_group_offsets(request)[group].result(TIMEOUT_SECONDS)
    )
    return {one.partition: (one.offset, one.metadata) for one in found.topic_partitions or ()}


def states(bootstrap: str, *groups: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def state_of(group: str) -> str:
        described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_SECONDS)
        return str(described.state.name)

    return {group: once_loaded(partial(state_of, group)) for group in groups}


def commit_in_transaction(bootstrap: str, group: str, offset: int, *, abort: bool) -> None:
    consumer = member(bootstrap, group)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"of-{group}"})
    try:
        producer.init_transactions(TIMEOUT_SECONDS)
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition(TOPIC, 0, offset)], consumer.consumer_group_metadata(), TIMEOUT_SECONDS
        )
        if abort:
            producer.abort_transaction(TIMEOUT_SECONDS)
        else:
            producer.commit_transaction(TIMEOUT_SECONDS)
    finally:
        consumer.close()


def test_offsets_and_groups_pass_from_one_broker_to_the_other_and_back(
    kafka: ApacheKafka, zookeeper: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    written_here = {"alpha": {0: 5, 1: 6, 2: 7}, "beta": {0: 1}}
    with ours(zookeeper, data) as broker:
        create_topic(broker.bootstrap)
        for group, offsets in written_here.items():
            commit(broker.bootstrap, group, dict.fromkeys(offsets, 0))
            commit(broker.bootstrap, group, offsets)
        commit(broker.bootstrap, "deleted", {0: 1})
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_consumer_groups(["deleted"])["deleted"].result(TIMEOUT_SECONDS)
        expected = {group: committed(broker.bootstrap, group) for group in written_here}
        assert expected["alpha"][2] == (7, "alpha 7")
        assert broker.stop() == 0

    taken_over = theirs(kafka, zookeeper, data, tmp_path / "kafka")
    try:
        taken_over.start()
        bootstrap = taken_over.bootstrap
        for group, found in expected.items():
            assert committed(bootstrap, group) == found
        assert states(bootstrap, "alpha", "beta") == {"alpha": "EMPTY", "beta": "EMPTY"}
        assert committed(bootstrap, "deleted") == {}
        commit(bootstrap, "alpha", {0: 50})
        commit(bootstrap, "gamma", {1: 9})
        commit_in_transaction(bootstrap, "exact", 33, abort=False)
        commit_in_transaction(bootstrap, "inexact", 44, abort=True)
        named = ("alpha", "beta", "gamma", "exact", "inexact")
        expected = {group: committed(bootstrap, group) for group in named}
        assert expected["alpha"][0] == (50, "alpha 50")
        assert expected["exact"][0][0] == 33
        taken_over.stop()
    finally:
        taken_over.kill()

    with ours(zookeeper, data) as broker:
        eventually(lambda: states(broker.bootstrap, "alpha") == {"alpha": "EMPTY"})
        for group, found in expected.items():
            assert committed(broker.bootstrap, group) == found, group
        commit(broker.bootstrap, "exact", {0: 34})
        assert committed(broker.bootstrap, "exact")[0][0] == 34


def test_members_move_with_their_coordinator(
    kafka: ApacheKafka, zookeeper: str, tmp_path: Path
) -> None:
    """A group that Kafka has stored with its members is stable here, with the same members."""
    data = tmp_path / "data"
    broker = theirs(kafka, zookeeper, data, tmp_path / "kafka")
    consumer = None
    try:
        broker.start()
        create_topic(broker.bootstrap)
        static = {"group.instance.id": "one", "session.timeout.ms": "300000"}
        consumer = member(broker.bootstrap, "static", **static)
        consumer.commit(offsets=[TopicPartition(TOPIC, 1, 11)], asynchronous=False)
        before = described(broker.bootstrap, "static")
        broker.stop()
    finally:
        broker.kill()
        if consumer is not None:
            consumer.close()  # too late to leave
    with ours(zookeeper, data) as successor:
        eventually(lambda: states(successor.bootstrap, "static") == {"static": "STABLE"})
        assert described(successor.bootstrap, "static") == before
        assert committed(successor.bootstrap, "static")[1][0] == 11


def described(bootstrap: str, group: str) -> list[tuple[object, ...]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_consumer_groups([group])[group].result(TIMEOUT_SECONDS)
    return [
        (
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.host,
            one.assignment.topic_partitions,
        )
        for one in found.members
    ]
