"""ZooKeeper stands still for longer than sessions last, and then goes on."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.observation import ClusterView, Unhealthy, healthy_view, wait_until_healthy
from tests.cluster.writers import Writer, check_no_two_leaders
from tests.support.broker import BrokerProcess
from tests.support.brokers_on_zookeeper import ask, running_brokers
from tests.support.zookeeper import ZooKeeperInThread

BROKERS = 3
SESSION_TIMEOUT_MS = 2000
PAUSE_SECONDS = 2 * SESSION_TIMEOUT_MS / 1000
HEAL_SECONDS = 15.0
WRITING_SECONDS = 1.0
CONNECTED = re.compile("connected to ZooKeeper again|session 0x")

# Each broker has one partition of its own and leads two of those that all three hold.
SINGLE = {number: (number,) for number in range(BROKERS)}
SHARED = {
    number: tuple((number + nth) % BROKERS for nth in range(BROKERS))
    for number in range(2 * BROKERS)
}


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperInThread]:
    server = ZooKeeperInThread(tmp_path / "zookeeper")
    yield server
    server.stop()


def pause(zookeeper: ZooKeeperInThread, number: signal.Signals) -> None:
    pid = zookeeper.server.pid
    assert pid is not None
    os.kill(pid, number)


def sessions_of(broker: BrokerProcess) -> int:
    """How often a broker has found ZooKeeper, in a new session or in the old one."""
    return len(CONNECTED.findall(broker.output))


def test_cluster_heals_without_two_leaders_after_zookeeper_stood_still(
    zookeeper: ZooKeeperInThread, tmp_path: Path
) -> None:
    connect = zookeeper.connect_string
    with running_brokers(
        connect, tmp_path, BROKERS, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as brokers:
        ask(connect, lambda store: store.create_topic("single", SINGLE))
        ask(connect, lambda store: store.create_topic("shared", SHARED))

        def healthy() -> ClusterView:
            controller = ask(connect, lambda store: store.controller_id())
            count = len(SINGLE) + len(SHARED)
            return healthy_view(brokers, range(BROKERS), controller, count)

        wait_until_healthy(healthy, HEAL_SECONDS, time.monotonic())
        before = ask(connect, lambda store: store.brokers())
        sessions = [sessions_of(broker) for broker in brokers]

        def healed() -> ClusterView:
            if any(sessions_of(one) == had for one, had in zip(brokers, sessions, strict=True)):
                raise Unhealthy("not all have found ZooKeeper again")
            return healthy()

        partitions = [("single", number) for number in SINGLE]
        partitions += [("shared", number) for number in SHARED]
        writers = [Writer(number, broker.port, partitions) for number, broker in enumerate(brokers)]

        async def write_through_the_pause() -> tuple[float, float, float]:
            tasks = [asyncio.create_task(writer.run()) for writer in writers]
            try:
                await asyncio.sleep(WRITING_SECONDS)
                pause(zookeeper, signal.SIGSTOP)
                stopped = time.monotonic()
                await asyncio.sleep(PAUSE_SECONDS)
                resumed = time.monotonic()
                pause(zookeeper, signal.SIGCONT)
                _, seconds = await asyncio.to_thread(
                    wait_until_healthy, healed, HEAL_SECONDS, resumed
                )
                print(f"healed {seconds:.2f} s after the pause")
                healed_at = time.monotonic()
                await asyncio.sleep(WRITING_SECONDS)
                assert not any(task.done() for task in tasks), "a connection was lost"
                return stopped, resumed, healed_at
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        stopped, resumed, healed_at = asyncio.run(write_through_the_pause())
        for writer in writers:
            during = [one for one in writer.accepted if stopped < one.started < resumed]
            assert ("single", writer.broker) in {one.partition for one in during}
        check_no_two_leaders(
            (one for writer in writers for one in writer.accepted),
            [broker.data for broker in brokers],
            healed_at,
        )
        after = ask(connect, lambda store: store.brokers())
        expired = [one for one in after if after[one].epoch > before[one].epoch]
        assert expired, "the pause was too short to end a session"
        take_writes = {
            one.partition for writer in writers for one in writer.accepted if one.started > resumed
        }
        assert take_writes == set(partitions)
