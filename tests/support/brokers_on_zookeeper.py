"""Several real brokers on one ZooKeeper, and what ZooKeeper and each of them say of the cluster."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from controller.cluster import LeaderAndIsr, TopicPartition
from controller.metadata_store import MetadataStore
from controller.zookeeper import ZooKeeperClient
from tests.support.broker import BrokerProcess

T = TypeVar("T")

T0 = TopicPartition("t", 0)
WAIT_SECONDS = 60.0


@asynccontextmanager
async def store_at(connect: str) -> AsyncIterator[MetadataStore]:
    client = ZooKeeperClient(connect)
    await client.connect()
    try:
        yield MetadataStore(client)
    finally:
        await client.close()


def ask(connect: str, question: Callable[[MetadataStore], Awaitable[T]]) -> T:
    async def with_store() -> T:
        async with store_at(connect) as store:
            return await question(store)

    return asyncio.run(with_store())


def wait_for_state(
    connect: str, condition: Callable[[LeaderAndIsr], bool], partition: TopicPartition = T0
) -> LeaderAndIsr:
    async def until_true(store: MetadataStore) -> LeaderAndIsr:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                state = (await store.partition_states([partition])).get(partition)
                if state is not None and condition(state):
                    return state
                await asyncio.sleep(0.02)

    return ask(connect, until_true)


def wait_for_controller(connect: str, broker: int) -> None:
    async def until_elected(store: MetadataStore) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while await store.controller_id() != broker:
                await asyncio.sleep(0.02)

    ask(connect, until_elected)


def create(connect: str, topic: str, *replicas: int) -> None:
    ask(connect, lambda store: store.create_topic(topic, {0: replicas}))


def on(connect: str, broker_id: int, session_timeout_ms: int = 18_000) -> dict[str, str]:
    return {
        "zookeeper.connect": connect,
        "broker.id": str(broker_id),
        "zookeeper.session.timeout.ms": str(session_timeout_ms),
    }


@contextmanager
def running_brokers(
    connect: str,
    directory: Path,
    count: int,
    overrides: Mapping[str, str] | None = None,
    *,
    session_timeout_ms: int = 18_000,
    log_dirs: Sequence[str] = (".",),
) -> Iterator[list[BrokerProcess]]:
    """Brokers 0, 1 and so on, started in this order: the first is the controller.

    Each has its files below a directory of its own, in one or more log directories.
    """
    with ExitStack() as stack:
        brokers = []
        for number in range(count):
            home = directory / str(number)
            settings = {
                **on(connect, number, session_timeout_ms),
                "log.dirs": ",".join(str(home / name) for name in log_dirs),
                **(overrides or {}),
            }
            broker = BrokerProcess(home, settings)
            stack.callback(broker.kill)
            broker.start()
            brokers.append(broker)
        yield brokers
