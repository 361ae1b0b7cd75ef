"""The operations on ZooKeeper that brokers and controllers share, against a real server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from controller import znodes
from controller.cluster import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from controller.fenced_store import FencedStore
from controller.metadata_store import (
    BrokerRegisteredError,
    ControllerEpoch,
    ControllerMovedError,
    MetadataStore,
    ProducerIdsExhaustedError,
    TopicExistsError,
)
from controller.zookeeper import NodeExistsError, SessionEvent, ZooKeeperClient
from tests.support.zookeeper import BreakableConnection

BROKER = BrokerInfo(3, (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),), "r1")


@asynccontextmanager
async def store_at(connect: str, session_timeout_ms: int = 18_000) -> AsyncIterator[MetadataStore]:
    client = ZooKeeperClient(connect, session_timeout_ms=session_timeout_ms)
    await client.connect()
    store = MetadataStore(client, now_ms=lambda: 1234)
    await store.create_top_level_paths()
    try:
        yield store
    finally:
        await client.close()


def run(connect: str, scenario: Callable[[MetadataStore], Awaitable[None]]) -> None:
    async def with_store() -> None:
        async with store_at(connect) as store:
            await scenario(store)

    asyncio.run(with_store())


def test_top_level_paths_are_made_once_and_hold_nothing(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.create_top_level_paths()
        for path in znodes.PERSISTENT_PATHS:
            assert (await store.client.get(path)).data == b""

    run(zookeeper_connect, scenario)


def test_first_proposed_cluster_id_stays(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        assert await store.get_or_create_cluster_id("first") == "first"
        assert await store.get_or_create_cluster_id("second") == "first"

    run(zookeeper_connect, scenario)


def test_generated_broker_ids_count_from_one(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        assert [await store.next_broker_id() for _ in range(3)] == [1, 2, 3]

    run(zookeeper_connect, scenario)


def test_broker_epoch_is_the_transaction_that_registered_it(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        epoch = await store.register_broker(BROKER)
        assert await store.brokers() == {3: BROKER.with_epoch(epoch)}
        node = await store.client.get("/brokers/ids/3")
        assert node.stat.version == 1  # created empty, then filled, as Kafka does
        assert await store.register_broker(BROKER) == epoch  # in the same session: ours

    run(zookeeper_connect, scenario)


def test_second_broker_of_the_same_id_is_refused(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.register_broker(BROKER)
        async with store_at(zookeeper_connect) as other:
            with pytest.raises(BrokerRegisteredError, match="id 3 is registered already"):
                await other.register_broker(BROKER)

    run(zookeeper_connect, scenario)


def test_broker_registers_anew_after_its_session_expired(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with (
            BreakableConnection(zookeeper_connect) as way,
            store_at(zookeeper_connect) as witness,
            store_at(way.connect_string, session_timeout_ms=600) as store,
        ):
            events: asyncio.Queue[SessionEvent] = asyncio.Queue()
            gone = asyncio.Event()
            store.client.on_session_event(events.put_nowait)
            first = await store.register_broker(BROKER)
            witness.client.watch_node("/brokers/ids/3", gone.set)
            await witness.client.exists("/brokers/ids/3")
            way.cut()
            await gone.wait()
            way.mend()
            while await events.get() is not SessionEvent.ESTABLISHED:
                continue
            assert await store.register_broker(BROKER) > first

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_one_controller_is_elected_at_a_time_with_rising_epochs(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        assert await store.controller_id() is None
        assert await store.elect_controller(3) == ControllerEpoch(1, 1)
        assert await store.controller_id() == 3
        async with store_at(zookeeper_connect) as other:
            with pytest.raises(ControllerMovedError):
                await other.elect_controller(4)
            await FencedStore(store.client, ControllerEpoch(1, 1)).resign()
            assert await other.elect_controller(4) == ControllerEpoch(2, 2)
            assert await store.controller_id() == 4

    run(zookeeper_connect, scenario)


def test_topic_is_written_with_its_settings(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.create_topic("t", {1: (1, 2), 0: (0, 1)}, {"retention.ms": "5"})
        assert await store.topics() == {"t"}
        assert await store.topic_config("t") == {"retention.ms": "5"}
        assert await store.topic_config("unknown") == {}
        assert await store.assignments(["t", "unknown"]) == {
            "t": {0: ReplicaAssignment((0, 1)), 1: ReplicaAssignment((1, 2))}
        }
        with pytest.raises(TopicExistsError):
            await store.create_topic("t", {0: (0,)})
        assert await store.topic_config("t") == {"retention.ms": "5"}

    run(zookeeper_connect, scenario)


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def test_states_of_many_partitions_are_created_and_changed(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        partitions = partitions_of("t", 250)
        await store.create_topic("t", {one.partition: (0, 1) for one in partitions})
        fenced = FencedStore(store.client, await store.elect_controller(0))
        first = LeaderAndIsr(0, (0, 1), controller_epoch=1)
        created = await fenced.create_partition_states(dict.fromkeys(partitions, first))
        assert created.written == dict.fromkeys(partitions, first)
        assert await store.partition_states(partitions) == created.written

        changed = {one: state.led_by(1, (1,)) for one, state in created.written.items()}
        updated = await fenced.update_partition_states(changed)
        assert await store.partition_states(partitions) == updated.written
        assert {state.version for state in updated.written.values()} == {1}

    run(zookeeper_connect, scenario)


def test_conflicting_changes_do_not_hold_up_the_others(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        a, b, c = partitions_of("t", 3)
        await store.create_topic("t", {0: (0, 1), 1: (0, 1), 2: (0, 1)})
        fenced = FencedStore(store.client, await store.elect_controller(0))
        first = LeaderAndIsr(0, (0, 1), controller_epoch=1)
        await store.client.ensure_path(znodes.partition(a))
        created = await fenced.create_partition_states({a: first, b: first})
        assert set(created.written) == {a, b}
        again = await fenced.create_partition_states({a: first.led_by(1), c: first})
        assert isinstance(again.failed[a], NodeExistsError)
        assert set(again.written) == {c}

        shrunk = LeaderAndIsr(0, (0,), 0, 1, 0)
        assert await store.update_partition_state(a, shrunk) == 1  # the leader was faster
        assert await store.update_partition_state(a, LeaderAndIsr(0, (0, 1), 0, 1, 0)) is None
        changed = await fenced.update_partition_states({a: first.led_by(1), b: first.led_by(1)})
        assert changed.conflicts == [a]
        assert set(changed.written) == {b}

    run(zookeeper_connect, scenario)


def test_deposed_controller_changes_nothing(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        partition = TopicPartition("t", 0)
        await store.create_topic("t", {0: (0,)})
        deposed = FencedStore(store.client, await store.elect_controller(0))
        await deposed.resign()
        await store.elect_controller(1)
        with pytest.raises(ControllerMovedError):
            await deposed.create_partition_states({partition: LeaderAndIsr(0, (0,))})
        with pytest.raises(ControllerMovedError):
            await deposed.delete_topic("t")
        with pytest.raises(ControllerMovedError):
            await deposed.resign()
        assert await store.partition_states([partition]) == {}
        assert await store.controller_id() == 1

    run(zookeeper_connect, scenario)


def test_deleted_topic_leaves_nothing_behind(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        partitions = partitions_of("t", 120)
        await store.create_topic("t", {one.partition: (0,) for one in partitions}, {"a": "b"})
        await store.mark_for_deletion("t")
        assert await store.topics_to_delete() == {"t"}
        fenced = FencedStore(store.client, await store.elect_controller(0))
        await fenced.create_partition_states(dict.fromkeys(partitions, LeaderAndIsr(0, (0,))))
        await fenced.delete_topic("t")
        assert await store.topics() == set()
        assert await store.topics_to_delete() == set()
        assert await store.client.children("/config/topics") == []

    run(zookeeper_connect, scenario)


def test_blocks_of_producer_ids_never_overlap(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        claims = (store.claim_producer_ids(broker % 3, 1000) for broker in range(20))
        blocks = sorted(await asyncio.gather(*claims), key=lambda block: block.start)
        assert blocks == [range(first, first + 1000) for first in range(0, 20_000, 1000)]
        data = (await store.client.get(znodes.PRODUCER_ID_BLOCK)).data
        assert znodes.decode_producer_id_block(data)[1:] == (19_000, 19_999)

    run(zookeeper_connect, scenario)


def test_producer_ids_end_before_they_overflow(zookeeper_connect: str) -> None:
    async def scenario(store: MetadataStore) -> None:
        last = 2**63 - 1001
        await store.client.set(
            znodes.PRODUCER_ID_BLOCK, znodes.encode_producer_id_block(1, last - 999, last)
        )
        assert await store.claim_producer_ids(1, 1000) == range(last + 1, last + 1001)
        with pytest.raises(ProducerIdsExhaustedError):
            await store.claim_producer_ids(1, 1000)

    run(zookeeper_connect, scenario)
