"""A broker that loses one of its log directories leads on with the others."""

import shutil
from pathlib import Path

from controller import znodes
from controller.cluster import TopicPartition
from network.protocol import ErrorCode
from tests.support.api import describe, produce
from tests.support.broker import BrokerProcess, running_broker
from tests.support.brokers_on_zookeeper import ask, on, wait_for_state
from tests.support.raw_client import RawClient, make_batch
from tests.support.waiting import eventually
from tests.support.zookeeper import zookeeper_connect

__all__ = ["zookeeper_connect"]

PARTITIONS = 4


def held_in(directory: Path) -> set[int]:
    return {int(path.name.removeprefix("t-")) for path in directory.glob("t-*")}


def test_leadership_leaves_a_failed_log_directory_and_stays_in_the_other(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    lost, kept = tmp_path / "lost", tmp_path / "kept"
    quick = {"replica.high.watermark.checkpoint.interval.ms": "100"}
    disks = {"log.dirs": f"{kept},{lost}"}
    with (
        running_broker(tmp_path / "other", on(zookeeper_connect, 0)) as other,
        running_broker(tmp_path / "unused", on(zookeeper_connect, 1) | quick | disks) as broker,
        RawClient(broker.port) as client,
    ):
        ask(
            zookeeper_connect,
            lambda store: store.create_topic("t", dict.fromkeys(range(PARTITIONS), (1, 0))),
        )
        for number in range(PARTITIONS):
            partition = TopicPartition("t", number)
            wait_for_state(zookeeper_connect, lambda state: state.leader == 1, partition)
        eventually(lambda: len(held_in(lost)) == len(held_in(kept)) == PARTITIONS // 2)
        in_lost, in_kept = held_in(lost), held_in(kept)
        shutil.rmtree(lost)  # which the next checkpoint meets

        for number in in_lost:
            partition = TopicPartition("t", number)
            state = wait_for_state(zookeeper_connect, lambda state: state.leader == 0, partition)
            assert state.isr == (0,)
        for number in in_kept:
            partition = TopicPartition("t", number)
            assert wait_for_state(zookeeper_connect, lambda _: True, partition).isr == (1, 0)
            answer = produce(client, "t", make_batch(b"x"), acks=1, partition=number)
            assert answer.error_code == ErrorCode.NONE
        for number in in_lost:
            answer = produce(client, "t", make_batch(b"x"), acks=1, partition=number)
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        eventually(lambda: offline_replicas(other) == {key: [1] for key in in_lost})

        eventually(
            lambda: (
                not ask(
                    zookeeper_connect, lambda store: store.client.children(znodes.LOG_DIR_EVENTS)
                )
            )
        )


def offline_replicas(broker: BrokerProcess) -> dict[int, list[int]]:
    with RawClient(broker.port) as client:
        found = describe(client, "t").partitions
    return {one.partition_index: one.offline_replicas for one in found if one.offline_replicas}
