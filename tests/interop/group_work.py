"""Consumers of one group that come and go while records keep coming, and what they must achieve.

Every record is processed at least once. And where consumers commit what they have processed, the
ranges that were committed lie end to end: exactly once per committed range.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS = 6
TIMEOUT_SECONDS = 30.0
RECORDS_PER_BURST = 60
PAUSE_SECONDS = 0.02

SESSION_TIMEOUT_MS = 6000
HEARTBEAT_INTERVAL_MS = 150


Ranges = Mapping[int, tuple[int, int]]


@dataclass
class Ledger:
    """What the consumers of a group say that they did."""

    processed: dict[int, set[int]] = field(default_factory=dict)
    ranges: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def process(self, partition: int, offset: int) -> None:
        with self._lock:
            self.processed.setdefault(partition, set()).add(offset)

    def commit(self, partition: int, start: int, end: int) -> None:
        with self._lock:
            self.ranges.setdefault(partition, []).append((start, end))

    @property
    def count(self) -> int:
        with self._lock:
            return sum(map(len, self.processed.values()))

    @property
    def committed(self) -> int:
        with self._lock:
            return sum(end - start for ranges in self.ranges.values() for start, end in ranges)


class Work:
    """What one consumer has processed and not yet committed, by partition."""

    def __init__(self, task: "Task") -> None:
        self._ledger = task.ledger
        self._has_begun = task.has_begun
        self._open: dict[int, list[int]] = {}

    def process(self, partition: int, offset: int) -> None:
        done = self._open.setdefault(partition, [])
        assert not done or done[-1] + 1 == offset, f"{partition}: {offset} follows {done[-1]}"
        done.append(offset)
        self._ledger.process(partition, offset)
        self._has_begun.set()

    def to_commit(self, only: Collection[int] | None = None) -> Ranges:
        """What was processed and is not committed."""
        return {
            partition: (done[0], done[-1] + 1)
            for partition, done in self._open.items()
            if done and (only is None or partition in only)
        }

    def committed(self, ranges: Ranges) -> None:
        """The broker has acknowledged it; partitions may have been taken away meanwhile."""
        for partition, (start, end) in ranges.items():
            self._ledger.commit(partition, start, end)
            left = [one for one in self._open.pop(partition, []) if one >= end]
            if left:
                self._open[partition] = left

    def lost(self, partitions: Collection[int]) -> None:
        """Another consumer will do it again."""
        for partition in partitions:
            self._open.pop(partition, None)


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


class GroupClient(Protocol):
    """A stock client: consume until told to stop, then leave."""

    def __call__(self, task: Task) -> None: ...


class Crew:
    """The consumers at work."""

    def __init__(self, consume: GroupClient, make_task: Callable[[], Task], ledger: Ledger) -> None:
        self._consume = consume
        self._make_task = make_task
        self._ledger = ledger
        self._at_work: list[tuple[Task, threading.Thread]] = []

    def __len__(self) -> int:
        return len(self._at_work)

    def come(self) -> None:
        """One more, who gets its share of the work before anything else happens."""
        task = self._make_task()
        thread = threading.Thread(target=self._run, args=[task], daemon=True)
        self._at_work.append((task, thread))
        thread.start()
        wait_until(task.has_begun.is_set, self._ledger)

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

    def _run(self, task: Task) -> None:
        try:
            self._consume(task)
        except BaseException as error:
            self._ledger.failures.append(error)


def create_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(TIMEOUT_SECONDS)


def work_through(
    consume: GroupClient,
    bootstrap: str,
    name: str,
    strategy: str,
    *,
    auto_commit: bool,
    changes: int,
    seed: int = 1,
) -> None:
    """Have members come and go `changes` times under load, and check all that they did."""
    create_topic(bootstrap, name)
    ledger = Ledger()
    random = Random(seed)

    def make_task() -> Task:
        return Task(bootstrap, name, f"group-of-{name}", strategy, auto_commit, ledger)

    crew = Crew(consume, make_task, ledger)
    try:
        with producing(bootstrap, name) as produced:
            crew.come()
            for _ in range(changes):
                wait_for_progress(ledger)
                if len(crew) < 2 or (len(crew) < 4 and random.random() < 0.6):
                    crew.come()
                else:
                    crew.go(random.randrange(len(crew)))
        total = sum(produced.values())
        wait_until(lambda: ledger.count >= total, ledger)
        if not auto_commit:
            wait_until(lambda: ledger.committed >= total, ledger)
    finally:
        crew.dismiss()
    check(ledger, produced, auto_commit=auto_commit)


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


def wait_for_progress(ledger: Ledger) -> None:
    """The group must get something done between two changes, lest it only ever rebalances."""
    goal = ledger.count + 2 * RECORDS_PER_BURST
    wait_until(lambda: ledger.count >= goal, ledger)


def wait_until(holds: Callable[[], bool], ledger: Ledger) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not holds():
        assert ledger.failures == []
        assert time.monotonic() < deadline, f"the group is stuck after {ledger.count} records"
        time.sleep(0.01)


def check(ledger: Ledger, produced: Mapping[int, int], *, auto_commit: bool) -> None:
    assert ledger.failures == []
    for partition, count in produced.items():
        assert ledger.processed.get(partition, set()) == set(range(count))
        if not auto_commit:
            position = 0
            for start, end in sorted(ledger.ranges.get(partition, [])):
                assert start == position, f"partition {partition}: [{start}, {end}) at {position}"
                position = end
            assert position == count, f"partition {partition} is committed up to {position} only"
