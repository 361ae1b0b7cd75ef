"""Many partitions on one broker: how long a topic takes to come and to go, and what idling costs.

Beside each time stands what the same files and znodes cost without a broker, measured in the same
run: directories with the files of an empty log, and the partitions' znodes written in transactions.
Run: python -m benchmarks.partitions [--partitions N] [--idle-partitions N] [--idle-seconds N]
"""

import argparse
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from kazoo.client import KazooClient, TransactionRequest

from network.protocol import ErrorCode
from network.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from network.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.support.api import describe
from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import RawClient
from tests.support.zookeeper import shared_zookeeper

TIMEOUT_SECONDS = 300.0
POLL_SECONDS = 0.02
SETTLING_SECONDS = 5.0
PARTITIONS_PER_TRANSACTION = 100
STATE = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
FILES_OF_A_LOG = (
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "leader-epoch-checkpoint",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--idle-partitions", type=int, default=5000)
    parser.add_argument("--idle-seconds", type=int, default=30)
    arguments = parser.parse_args()
    count = arguments.partitions
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as directory:
        create_baseline, delete_baseline = bare_work(Path(directory), count)
        settings = {"zookeeper.connect": f"{shared_zookeeper().connect_string}/bench"}
        with running_broker(Path(directory) / "logs", settings) as broker:
            with RawClient(broker.port) as client:
                report(
                    f"create {count} partitions",
                    create_baseline,
                    lambda: create(client, "t", count),
                )
                report(
                    f"delete {count} partitions",
                    delete_baseline,
                    lambda: delete(client, broker, "t"),
                )
                for number in range(arguments.idle_partitions // count):
                    create(client, f"idle-{number}", count)
            idle(broker, arguments.idle_partitions, arguments.idle_seconds)


def report(what: str, baseline: float, work: Callable[[], None]) -> None:
    started = time.monotonic()
    work()
    elapsed = time.monotonic() - started
    print(f"{what:26} {elapsed:6.2f} s   {elapsed / baseline:5.1f}x the bare {baseline:.2f} s")


def create(client: RawClient, topic: str, partitions: int) -> None:
    """Until every partition is led, as the broker's metadata has it."""
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=0)
    client.ask(request, 5)
    wait_until(lambda: led_partitions(client, topic) == partitions)


def led_partitions(client: RawClient, topic: str) -> int:
    found = describe(client, topic, allow_auto_topic_creation=False)
    return sum(one.leader_id >= 0 for one in found.partitions)


def delete(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    """Until metadata and ZooKeeper have forgotten the topic and no directory has its name."""
    client.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=0), 4)

    def is_gone() -> bool:
        found = describe(client, topic, allow_auto_topic_creation=False)
        return found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    wait_until(is_gone)
    completed = re.compile(f"Deletion of topic {topic} successfully completed")
    broker.wait_for_line(completed, TIMEOUT_SECONDS)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(POLL_SECONDS)


def idle(broker: BrokerProcess, partitions: int, seconds: int) -> None:
    """The share of one core that a broker uses of which nobody wants anything."""
    process = psutil.Process(broker.pid)
    time.sleep(SETTLING_SECONDS)
    before, started = process.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after, elapsed = process.cpu_times(), time.monotonic() - started
    used = after.user + after.system - before.user - before.system
    memory = process.memory_info().rss / 1e6
    print(f"idle, {partitions} partitions     {used / elapsed:6.2%} of a core, {memory:.0f} MB")


def bare_work(directory: Path, partitions: int) -> tuple[float, float]:
    """Seconds to make and to remove the files and znodes of a topic, without a broker."""
    zookeeper = KazooClient(f"{shared_zookeeper().connect_string}")
    zookeeper.start()
    try:
        zookeeper.ensure_path("/bare")
        started = time.monotonic()
        for number in range(partitions):
            folder = directory / f"bare-{number}"
            folder.mkdir()
            for name in FILES_OF_A_LOG:
                (folder / name).touch()
        in_transactions(
            partitions,
            zookeeper,
            lambda transaction, number: (
                transaction.create(f"/bare/{number}"),
                transaction.create(f"/bare/{number}/state", STATE),
            ),
        )
        created = time.monotonic()
        for number in range(partitions):
            shutil.rmtree(directory / f"bare-{number}")
        in_transactions(
            partitions,
            zookeeper,
            lambda transaction, number: (
                transaction.delete(f"/bare/{number}/state"),
                transaction.delete(f"/bare/{number}"),
            ),
        )
        return created - started, time.monotonic() - created
    finally:
        zookeeper.stop()
        zookeeper.close()


def in_transactions(
    partitions: int, zookeeper: KazooClient, add: Callable[[TransactionRequest, int], object]
) -> None:
    for start in range(0, partitions, PARTITIONS_PER_TRANSACTION):
        transaction = zookeeper.transaction()
        for number in range(start, min(start + PARTITIONS_PER_TRANSACTION, partitions)):
            add(transaction, number)
        failed = [one for one in transaction.commit() if isinstance(one, Exception)]
        assert not failed, failed


if __name__ == "__main__":
    main()
