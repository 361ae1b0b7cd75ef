"""Consumers of one group that come and go while records keep coming."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.commit_log import commits_of
from tests.interop.group_ledger import Ledger, Work, check

PARTITIONS = 6
TIMEOUT_SECONDS = 30.0
RECORDS_PER_BURST = 60
PAUSE_SECONDS = 0.02

SESSION_TIMEOUT_MS = 6000
HEARTBEAT_INTERVAL_MS = 150


@dataclass(frozen=True)
class Task:
    """What a consumer is to do."""

    bootstrap: str
    topic: str
    group: str
    strategy: str
    auto_commit: bool
    ledger: Ledger
    has_begun: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> Work:
        return Work(self.ledger, self.has_begun)


class GroupClient(Protocol):
    """A stock client: consume until told to stop, then leave."""

    def __call__(self, task: Task) -> None: ...


@dataclass(frozen=True)
class Team:
    """Clients that share a group, in which they come in turn."""

    clients: Sequence[GroupClient]
    strategy: str
    auto_commit: bool

    def __str__(self) -> str:
        names = "+".join(client.__name__ for client in self.clients)  # type: ignore[attr-defined]
        return f"{names}-{self.strategy}-{'auto' if self.auto_commit else 'manual'}"


class Crew:
    """The consumers at work."""

    def __init__(self, team: Team, bootstrap: str, topic: str, group: str) -> None:
        self.ledger = Ledger()
        self._clients = itertools.cycle(team.clients)
        self._task = Task(bootstrap, topic, group, team.strategy, team.auto_commit, self.ledger)
        self._at_work: list[tuple[Task, threading.Thread]] = []

    def __len__(self) -> int:
        return len(self._at_work)

    def come(self) -> None:
        """One more, who gets its share of the work before anything else happens."""
        task = replace(self._task, has_begun=threading.Event(), stop=threading.Event())
        thread = threading.Thread(target=self._run, args=[next(self._clients), task], daemon=True)
        self._at_work.append((task, thread))
        thread.start()
        self.wait_until(task.has_begun.is_set)

    def go(self, number: int) -> None:
        task, thread = self._at_work.pop(number)
        task.stop.set()
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive(), "a consumer does not stop"

    def dismiss(self) -> None:
        """Everybody goes, also where the test has failed already."""
        for task, _ in self._at_work:
            task.stop.set()
        for _, thread in self._at_work:
            thread.join(TIMEOUT_SECONDS)

    def wait_for_progress(self) -> None:
        """The group must get something done between two changes, lest it only ever rebalances."""
        goal = self.ledger.count + 2 * RECORDS_PER_BURST
        self.wait_until(lambda: self.ledger.count >= goal)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not holds():
            assert self.ledger.failures == []
            assert time.monotonic() < deadline, f"stuck after {self.ledger.count} records"
            time.sleep(0.01)

    def _run(self, consume: GroupClient, task: Task) -> None:
        try:
            consume(task)
        except BaseException as error:
            self.ledger.failures.append(error)


def work_through(team: Team, bootstrap: str, name: str, *, changes: int, seed: int = 1) -> None:
    """Have members come and go `changes` times under load, and check all that they did."""
    group = f"group-of-{name}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(TIMEOUT_SECONDS)
    crew = Crew(team, bootstrap, name, group)
    random = Random(seed)
    try:
        with producing(bootstrap, name) as produced:
            crew.come()
            for _ in range(changes):
                crew.wait_for_progress()
                if len(crew) < 2 or (len(crew) < 4 and random.random() < 0.6):
                    crew.come()
                else:
                    crew.go(random.randrange(len(crew)))
        total = sum(produced.values())
        crew.wait_until(lambda: crew.ledger.count >= total)
        crew.wait_until(lambda: committed(admin, group) >= total)
    finally:
        crew.dismiss()
    check(crew.ledger, produced, commits_of(bootstrap, group, name))


def committed(admin: AdminClient, group: str, timeout_seconds: float = TIMEOUT_SECONDS) -> int:
    """How many records a group is done with."""
    wanted = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([wanted])[group].result(timeout_seconds)
    return sum(max(one.offset, 0) for one in found.topic_partitions)


@contextmanager
def producing(bootstrap: str, topic: str) -> Iterator[dict[int, int]]:
    """Records in small bursts until the end; afterwards, how many each partition has."""
    stop = threading.Event()
    counts = dict.fromkeys(range(PARTITIONS), 0)
    failures: list[object] = []

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                failures.append(error)

        number = 0
        while not stop.is_set():
            for _ in range(RECORDS_PER_BURST):
                partition = number % PARTITIONS
                producer.produce(
                    topic, b"record %d" % number, partition=partition, on_delivery=delivered
                )
                counts[partition] += 1
                number += 1
            producer.poll(0)
            time.sleep(PAUSE_SECONDS)
        if producer.flush(TIMEOUT_SECONDS):
            failures.append("not everything was delivered")

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield counts
    finally:
        stop.set()
        thread.join(TIMEOUT_SECONDS)
    assert failures == []
