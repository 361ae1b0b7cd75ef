"""Which moves the state machines allow, and that others are refused."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from controller import partition_states, replica_states
from controller.channels import Channels
from controller.cluster import Replica, ReplicaAssignment, TopicPartition
from controller.context import ControllerContext, PartitionState, ReplicaState
from controller.fenced_store import FencedStore
from controller.metadata_store import MetadataStore
from controller.partition_states import PartitionStateMachine
from controller.replica_states import ReplicaStateMachine
from controller.request_batch import RequestBatch
from controller.zookeeper import ZooKeeperClient
from network.protocol.schema import Request, Response

T0 = TopicPartition("t", 0)


async def never(*_: object) -> Response:
    raise AssertionError("nobody should be told anything")


class Machines:
    """Both machines on an empty ZooKeeper and a cluster without brokers."""

    def __init__(self, store: MetadataStore, fenced: FencedStore) -> None:
        self.context = ControllerContext(epoch=fenced.term.epoch)
        self.context.assign(T0, ReplicaAssignment((0, 1)))
        batch = RequestBatch(0, self.context, Channels(never), lambda _: None)
        self.partitions = PartitionStateMachine(self.context, store, fenced, batch)
        self.replicas = ReplicaStateMachine(self.context, store, fenced, batch)


def run(connect: str, scenario: Callable[[Machines], Awaitable[None]]) -> None:
    async def with_machines() -> None:
        client = ZooKeeperClient(connect)
        await client.connect()
        store = MetadataStore(client)
        await store.create_top_level_paths()
        fenced = FencedStore(client, await store.elect_controller(0))
        try:
            await scenario(Machines(store, fenced))
        finally:
            await client.close()

    asyncio.run(with_machines())


def test_every_partition_move_outside_the_table_is_refused(
    zookeeper_connect: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(machines: Machines) -> None:
        for target, allowed in partition_states.VALID_PREVIOUS_STATES.items():
            for state in set(PartitionState) - allowed:
                machines.context.partition_states[T0] = state
                caplog.clear()
                await machines.partitions.move([T0], target)
                assert machines.context.partition_states[T0] is state
                assert "can't go from" in caplog.text

    with caplog.at_level(logging.ERROR):
        run(zookeeper_connect, scenario)


def test_every_replica_move_outside_the_table_is_refused(
    zookeeper_connect: str, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(T0, 1)

    async def scenario(machines: Machines) -> None:
        for target, allowed in replica_states.VALID_PREVIOUS_STATES.items():
            for state in set(ReplicaState) - allowed:
                machines.context.replica_states[replica] = state
                caplog.clear()
                await machines.replicas.move([replica], target)
                assert machines.context.replica_states[replica] is state
                assert "can't go from" in caplog.text

    with caplog.at_level(logging.ERROR):
        run(zookeeper_connect, scenario)


def test_partition_without_live_replica_stays_new(zookeeper_connect: str) -> None:
    async def scenario(machines: Machines) -> None:
        await machines.partitions.move([T0], PartitionState.NEW)
        results = await machines.partitions.move([T0], PartitionState.ONLINE)
        assert "no live broker" in str(results[T0])
        assert machines.context.partition_state(T0) is PartitionState.NEW

    run(zookeeper_connect, scenario)


def test_offline_partition_without_state_stays_offline(zookeeper_connect: str) -> None:
    async def scenario(machines: Machines) -> None:
        machines.context.partition_states[T0] = PartitionState.OFFLINE
        results = await machines.partitions.move([T0], PartitionState.ONLINE)
        assert "no state in ZooKeeper" in str(results[T0])
        assert machines.context.offline_partition_count == 1

    run(zookeeper_connect, scenario)


def test_deleted_replica_leaves_the_assignment(zookeeper_connect: str) -> None:
    replica = Replica(T0, 1)

    async def scenario(machines: Machines) -> None:
        machines.context.replica_states[replica] = ReplicaState.DELETION_SUCCESSFUL
        await machines.replicas.move([replica], ReplicaState.NON_EXISTENT)
        assert machines.context.assignment(T0) == ReplicaAssignment((0,))
        assert machines.context.replica_state(replica) is ReplicaState.NON_EXISTENT

    run(zookeeper_connect, scenario)


def test_requests_to_a_gone_broker_are_dropped() -> None:
    Channels(never).put(3, Request())
