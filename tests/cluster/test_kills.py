"""Three brokers on one ZooKeeper, of which leaders and the controller are killed in turn.

What is asserted is leadership, not data: followers do not fetch yet. So in-sync replicas of the
``clean`` topics are grown by the test, as their leaders will do once followers have caught up;
those of the ``unclean`` topics only ever shrink, and any live replica may lead; ``single`` topics
have one replica, and live and die with its broker.
"""

import itertools
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from controller import znodes
from controller.assignment import BrokerRack, assign_replicas
from controller.cluster import TopicPartition
from controller.metadata_store import MetadataStore
from tests.cluster.observation import ClusterView, Unhealthy, healthy_view, wait_until_healthy
from tests.support.broker import BrokerProcess
from tests.support.brokers_on_zookeeper import ask, running_brokers
from tests.support.zookeeper import zookeeper_connect

__all__ = ["zookeeper_connect"]

BROKERS = 3
SESSION_TIMEOUT_MS = 3000
FAILOVER_SECONDS = 2.0  # once the dead broker's session has timed out
START_SECONDS = 30.0
DELIVERY_SECONDS = 20.0
FEW_KILLS, SHORT_SOAK_KILLS, SOAK_KILLS = 3, 8, 50

# name -> partitions, replicas, settings
TOPICS = {
    "single-1": (1, 1, {}),
    "single-100": (100, 1, {}),
    "clean-1": (1, 3, {}),
    "clean-30": (30, 3, {}),
    "clean-100": (100, 3, {}),
    "unclean-3": (3, 3, {"unclean.leader.election.enable": "true"}),
    "unclean-10": (10, 2, {"unclean.leader.election.enable": "true"}),
}
PARTITIONS = sum(partitions for partitions, _, _ in TOPICS.values())


class Cluster:
    """The brokers, and a producer and a consumer that live through all of it."""

    def __init__(self, connect: str, brokers: list[BrokerProcess]) -> None:
        self.connect = connect
        self.brokers = brokers
        self.live = set(range(BROKERS))
        self.numbers = itertools.count()
        bootstrap = ",".join(broker.bootstrap for broker in brokers)
        quick = {
            "bootstrap.servers": bootstrap,
            "topic.metadata.refresh.interval.ms": 500,
            "log_level": 0,
        }
        self.producer = Producer({**quick, "acks": 1, "linger.ms": 0, "retry.backoff.ms": 50})
        self.consumer = Consumer(
            {**quick, "group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": 50}
        )

    def controller(self) -> int | None:
        return ask(self.connect, lambda store: store.controller_id())

    def healthy(self) -> ClusterView:
        return healthy_view(self.brokers, self.live, self.controller(), PARTITIONS)

    def kill(self, number: int) -> tuple[ClusterView, float]:
        """SIGKILL; the cluster after the others have taken over, and how long that took."""
        killed = time.monotonic()
        self.brokers[number].kill()
        self.live.discard(number)
        within = SESSION_TIMEOUT_MS / 1000 + FAILOVER_SECONDS * crowding()
        return wait_until_healthy(self.healthy, within, killed)

    def start(self, number: int) -> ClusterView:
        self.brokers[number].start()
        self.live.add(number)
        wait_until_healthy(self.healthy, START_SECONDS, time.monotonic())
        ask(self.connect, self._grow_in_sync_replicas)
        return wait_until_healthy(self._grown, START_SECONDS, time.monotonic())[0]

    def clients_go_on(self, view: ClusterView, chance: random.Random) -> None:
        """Stock clients write to leaders of every topic, and read back what they may."""
        sent: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
        failures: list[object] = []

        def delivered(error: object, message: object) -> None:
            if error is not None:
                failures.append(error)
            else:
                key = (message.topic(), message.partition())  # type: ignore[attr-defined]
                sent.setdefault(key, []).append((message.offset(), message.value()))  # type: ignore[attr-defined]

        led = [key for key, one in view.partitions.items() if one.leader >= 0]
        for topic, partition in chance.sample(led, 60):
            value = str(next(self.numbers)).encode()
            self.producer.produce(topic, value, partition=partition, on_delivery=delivered)
        assert self.producer.flush(DELIVERY_SECONDS) == 0, "records were not delivered in time"
        assert not failures, failures
        committed = {
            key: records for key, records in sent.items() if len(view.partitions[key].isr) == 1
        }
        self._read_back(committed)

    def _read_back(self, records: dict[tuple[str, int], list[tuple[int, bytes]]]) -> None:
        wanted = {(*key, offset): value for key, some in records.items() for offset, value in some}
        assert wanted
        self.consumer.assign(
            [Place(*key, min(offset for offset, _ in some)) for key, some in records.items()]
        )
        deadline = time.monotonic() + DELIVERY_SECONDS
        while wanted:
            assert time.monotonic() < deadline, f"never read: {wanted}"
            message = self.consumer.poll(0.5)
            if message is None or message.error():
                continue
            key = (message.topic(), message.partition(), message.offset())
            if key in wanted:
                assert message.value() == wanted.pop(key)

    async def _grow_in_sync_replicas(self, store: MetadataStore) -> None:
        names = [name for name in TOPICS if name.startswith("clean")]
        partitions = [TopicPartition(name, n) for name in names for n in range(TOPICS[name][0])]
        waiting = partitions
        while waiting:  # a write fails where the controller was quicker
            states = await store.partition_states(waiting)
            waiting = [
                partition
                for partition, state in states.items()
                if await store.update_partition_state(
                    partition, replace(state, isr=tuple(range(BROKERS)))
                )
                is None
            ]
        notice = znodes.encode_isr_change(partitions)
        await store.client.create(znodes.ISR_CHANGE_PREFIX, notice, sequential=True)

    def _grown(self) -> ClusterView:
        view = self.healthy()
        for (topic, _), one in view.partitions.items():
            if topic.startswith("clean") and len(one.isr) < BROKERS:
                raise Unhealthy("the brokers have not heard of the in-sync replicas yet")
        return view


def crowding() -> float:
    """How many processes share a core just now: what takes a second alone takes so many."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@contextmanager
def cluster_of_topics(connect: str, directory: Path) -> Iterator[Cluster]:
    quiet = {"auto.create.topics.enable": "false", "auto.leader.rebalance.enable": "false"}
    with running_brokers(
        connect, directory, BROKERS, quiet, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as brokers:
        ask(connect, create_topics)
        cluster = Cluster(connect, brokers)
        try:
            wait_until_healthy(cluster.healthy, START_SECONDS, time.monotonic())
            yield cluster
        finally:
            cluster.consumer.close()


async def create_topics(store: MetadataStore) -> None:
    brokers = [BrokerRack(number) for number in range(BROKERS)]
    for name, (partitions, replicas, settings) in TOPICS.items():
        assignment = assign_replicas(brokers, partitions, replicas)
        await store.create_topic(name, assignment, settings)


def survive(connect: str, directory: Path, kills: int) -> list[float]:
    chance = random.Random(kills)
    took = []
    with cluster_of_topics(connect, directory) as cluster:
        view = cluster.healthy()
        cluster.clients_go_on(view, chance)
        for number in range(kills):
            leader = view.partitions["clean-1", 0].leader
            victim = view.controller if number % 2 else leader
            epochs = {key: one.leader_epoch for key, one in view.partitions.items()}
            after, seconds = cluster.kill(victim)
            took.append(seconds)
            for key, one in after.partitions.items():
                assert one.leader_epoch >= epochs[key]
                if key in view.led_by(victim) and one.leader >= 0:
                    assert one.leader_epoch > epochs[key], f"{key} has a new leader, not epoch"
            cluster.clients_go_on(after, chance)
            view = cluster.start(victim)
    print(f"took over after {min(took):.2f} to {max(took):.2f} s")
    return took


def soak_kills() -> int:
    return SHORT_SOAK_KILLS if os.environ.get("BARNABAS_SOAK") == "short" else SOAK_KILLS


def test_cluster_survives_the_death_of_leaders_and_controllers(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    assert len(survive(zookeeper_connect, tmp_path, FEW_KILLS)) == FEW_KILLS


@pytest.mark.soak
def test_cluster_survives_many_deaths(zookeeper_connect: str, tmp_path: Path) -> None:
    assert len(survive(zookeeper_connect, tmp_path, soak_kills())) == soak_kills()
