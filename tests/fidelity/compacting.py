"""The same logs compacted by Apache Kafka and by us, twice: the second time what the other left.

Owns the course of it; what is to be seen then is the tests' concern.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from storage.append_info import ReadIsolation
from storage.records import Batch
from tests.fidelity.clients import consume
from tests.fidelity.consumed import ReadTopic
from tests.fidelity.dirty_logs import LEADER_EPOCH, DirtyDirectory, new_writers
from tests.fidelity.fixture_logs import batches_of
from tests.fidelity.registered import register_topics
from tests.support.apache_kafka import ApacheKafka, KafkaBroker, require_apache_kafka

ISOLATIONS: Final = {
    "read_uncommitted": ReadIsolation.HIGH_WATERMARK,
    "read_committed": ReadIsolation.COMMITTED,
}
ROUNDS: Final = ("first", "second")
_PATIENCE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was left of the same logs, and what Kafka's clients read of those that Kafka had."""

    ours: DirtyDirectory
    kafkas: DirtyDirectory
    consumed: dict[str, ReadTopic]
    log_text: str


@contextmanager
def _served_by_kafka(
    kafka: ApacheKafka, zookeeper: str, directory: DirtyDirectory, home: Path
) -> Iterator[KafkaBroker]:
    settings = {"log.dirs": str(directory.path), "auto.create.topics.enable": "false"}
    broker = KafkaBroker(kafka, home, zookeeper, settings)
    try:
        broker.start()
        yield broker
        broker.stop()
    finally:
        broker.kill()


def _compact_with_kafka(
    kafka: ApacheKafka, zookeeper: str, directory: DirtyDirectory, home: Path
) -> tuple[dict[str, ReadTopic], str]:
    """Let Kafka compact all logs, each as far as it can be; returns what its clients then read,
    and what it logged."""
    before = directory.cleaned_offsets
    with _served_by_kafka(kafka, zookeeper, directory, home) as broker:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while left := directory.partitions - {
            key for key, offset in directory.cleaned_offsets.items() if offset > before.get(key, 0)
        }:
            assert time.monotonic() < deadline, f"Kafka does not compact {left}: {broker.log_text}"
            time.sleep(_POLL_SECONDS)
        consumed = {
            isolation: consume(broker.bootstrap, directory.partitions, isolation=isolation)
            for isolation in ISOLATIONS
        }
        return consumed, broker.log_text


def both_rounds_with(release: str, home: Path) -> dict[str, Compacted]:
    """Both rounds by name; the calling test is skipped where that release cannot be run."""
    rounds = _compact_twice(require_apache_kafka(release), home)
    return dict(zip(ROUNDS, rounds, strict=True))


def _compact_twice(kafka: ApacheKafka, home: Path) -> Iterator[Compacted]:
    """First everybody compacts what we have written; then, with more written, what the other one
    has left."""
    one, other = DirtyDirectory(home / "one"), DirtyDirectory(home / "other")
    writers = new_writers(one.logs)
    one.write(writers)
    one.set_ages()
    shutil.copytree(one.path, other.path)
    with kafka.zookeeper(home / "zookeeper") as zookeeper:
        register_topics(zookeeper.connect, one.configs, LEADER_EPOCH)
        one.compact()
        result = _compact_with_kafka(kafka, zookeeper.connect, other, home / "first-broker")
        yield _kept(Compacted(one, other, *result), home / ROUNDS[0])
        twins = {topic: writer.fork() for topic, writer in writers.items()}
        for directory, each in ((one, writers), (other, twins)):
            directory.write(each)
            directory.set_ages()
        other.compact()
        result = _compact_with_kafka(kafka, zookeeper.connect, one, home / "second-broker")
        yield _kept(Compacted(other, one, *result), home / ROUNDS[1])


def _kept(compacted: Compacted, home: Path) -> Compacted:
    """A copy, with the times of its files."""
    copies = []
    for directory, name in ((compacted.ours, "ours"), (compacted.kafkas, "kafkas")):
        shutil.copytree(directory.path, home / name)
        copies.append(DirtyDirectory(home / name))
    return replace(compacted, ours=copies[0], kafkas=copies[1])


def segments_of(directory: DirtyDirectory, topic: str) -> dict[str, list[Batch]]:
    paths = sorted((directory.path / f"{topic}-0").glob("*.log"))
    return {path.name: batches_of(path) for path in paths}
