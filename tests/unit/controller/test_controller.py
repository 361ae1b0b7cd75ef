"""Controllers on a real ZooKeeper, with stand-ins for the brokers that they steer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from controller import znodes
from controller.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition
from controller.zookeeper import Create, Delete, SetData
from network.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from network.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.support.cluster import StandInBroker, StandInCluster

T0 = TopicPartition("t", 0)


def run(
    connect: str, scenario: Callable[[StandInCluster], Awaitable[None]], **options: bool
) -> None:
    async def with_cluster() -> None:
        async with StandInCluster(connect, **options) as cluster:
            await scenario(cluster)

    asyncio.run(asyncio.wait_for(with_cluster(), 90))


def test_single_broker_elects_itself_and_learns_of_itself(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        controller = await cluster.start(0)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0})
        assert controller.is_active
        assert (controller.controller_id, controller.epoch) == (0, 1)
        assert cluster.brokers[0].controller_id == 0
        first = cluster.brokers[0].requests[0]
        assert isinstance(first, UpdateMetadataRequest)
        assert first.broker_epoch == cluster.brokers[0].info.epoch

    run(zookeeper_connect, scenario)


def test_new_topic_gets_leaders_and_states(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.until(lambda: cluster.brokers[1].live_brokers == {0, 1})
        await cluster.store.create_topic("t", {0: (0, 1), 1: (1, 0)})
        await cluster.until_led("t", 0, leader=0)
        state = await cluster.until_led("t", 1, leader=1)
        assert state == LeaderAndIsr(1, (1, 0), leader_epoch=0, controller_epoch=1, version=0)
        await cluster.until(lambda: len(cluster.brokers[1].replicas) == 2)
        told = cluster.brokers[1].replicas[TopicPartition("t", 1)]
        assert told.is_new
        assert (told.leader, told.isr, told.replicas) == (1, [1, 0], [1, 0])

    run(zookeeper_connect, scenario)


def test_topic_of_many_partitions_travels_in_few_requests(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.until(lambda: bool(cluster.brokers[0].live_brokers))
        cluster.brokers[0].requests.clear()
        await cluster.store.create_topic("t", dict.fromkeys(range(300), (0,)))
        await cluster.until(lambda: len(cluster.brokers[0].metadata) == 300)
        kinds = [type(request) for request in cluster.brokers[0].requests]
        assert kinds == [LeaderAndIsrRequest, UpdateMetadataRequest]

    run(zookeeper_connect, scenario)


def test_added_partitions_come_online(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.store.create_topic("t", {0: (0,)})
        await cluster.until_led("t", 0, leader=0)
        for count in (2, 3):
            assignment = {number: ReplicaAssignment((0,)) for number in range(count)}
            await cluster.store.set_assignment("t", assignment)
            await cluster.until_led("t", count - 1, leader=0)

    run(zookeeper_connect, scenario)


def test_leadership_moves_within_the_in_sync_replicas_and_waits_for_them(
    zookeeper_connect: str,
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        for broker in (0, 1, 2):
            await cluster.start(broker)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1, 2})
        await cluster.store.create_topic("t", {0: (1, 2)})
        await cluster.until_led("t", 0, leader=1)
        await cluster.stop(1)
        state = await cluster.until_led("t", 0, leader=2)
        assert state.isr == (2,)
        await cluster.stop(2)
        state = await cluster.until_led("t", 0, leader=-1)
        assert state.isr == (2,), "the last in-sync replica must stay known"
        await cluster.start(1)  # alive, but out of sync
        await cluster.until(lambda: cluster.brokers[1].live_brokers == {0, 1})
        assert (await cluster.state("t")) == state
        await cluster.start(2)
        state = await cluster.until_led("t", 0, leader=2)
        await cluster.until(lambda: cluster.brokers[1].replicas[T0].leader == 2)

    run(zookeeper_connect, scenario)


def test_unclean_election_only_where_the_topic_allows_it(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        for broker in (0, 1, 2):
            await cluster.start(broker)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1, 2})
        allowed = {"unclean.leader.election.enable": "true"}
        await cluster.store.create_topic("unclean", {0: (1, 2)}, allowed)
        await cluster.store.create_topic("t", {0: (1, 2)})
        for topic in ("unclean", "t"):
            state = await cluster.until_led(topic, 0, leader=1)
            only_leader = LeaderAndIsr(1, (1,), 0, state.controller_epoch, state.version)
            partition = TopicPartition(topic, 0)
            assert await cluster.store.update_partition_state(partition, only_leader) is not None
        await cluster.stop(1)
        state = await cluster.until_led("unclean", 0, leader=2)
        assert state.isr == (2,)
        state = await cluster.until_led("t", 0, leader=-1)
        assert state.isr == (1,)

    run(zookeeper_connect, scenario)


def test_next_controller_takes_over_with_a_higher_epoch(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.until(lambda: cluster.active == [0])
        await cluster.start(1)
        await cluster.until(lambda: cluster.controllers[1].controller_id == 0)
        await cluster.store.create_topic("t", {0: (0, 1)})
        await cluster.until_led("t", 0, leader=0)
        await cluster.stop(0)
        await cluster.until(lambda: cluster.active == [1])
        assert cluster.controllers[1].epoch == 2
        state = await cluster.until_led("t", 0, leader=1)
        assert state.controller_epoch == 2
        assert state.isr == (1,)
        assert cluster.brokers[1].controller_id == 1

    run(zookeeper_connect, scenario)


def test_deleting_the_controller_node_makes_a_new_election(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.until(lambda: cluster.controllers[0].epoch == 1)
        await cluster.store.client.delete(znodes.CONTROLLER)
        await cluster.until(lambda: cluster.controllers[0].epoch == 2)

    run(zookeeper_connect, scenario)


def test_restarted_broker_is_told_everything_anew(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
        await cluster.store.create_topic("t", {0: (1,), 1: (0,)})
        await cluster.until_led("t", 0, leader=1)
        await cluster.stop(1)
        await cluster.start(1)
        again = cluster.brokers[1]
        await cluster.until(lambda: T0 in again.replicas and len(again.metadata) == 2)
        await cluster.until_led("t", 0, leader=1)
        assert {request.broker_epoch for request in again.requests} == {again.info.epoch}  # type: ignore[attr-defined]

    run(zookeeper_connect, scenario)


def test_request_is_tried_until_the_broker_answers(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0})
        await cluster.start(1)
        cluster.brokers[1].is_reachable = False
        await cluster.store.create_topic("t", {0: (1,)})
        await cluster.until(lambda: T0 in cluster.brokers[0].metadata)
        cluster.brokers[1].is_reachable = True
        await cluster.until(lambda: T0 in cluster.brokers[1].replicas)

    run(zookeeper_connect, scenario)


def test_replica_on_a_failed_disk_loses_leadership(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
        cluster.brokers[0].failed_disk = {T0}
        await cluster.store.create_topic("t", {0: (0, 1)})
        state = await cluster.until_led("t", 0, leader=1)
        assert state.isr == (1,)
        await cluster.until(lambda: cluster.brokers[1].metadata[T0].offline_replicas == [0])

    run(zookeeper_connect, scenario)


def test_unclean_election_that_is_allowed_later_finds_leaders(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        for broker in (0, 1, 2):
            await cluster.start(broker)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1, 2})
        for topic in ("t", "u"):
            await cluster.store.create_topic(topic, {0: (1, 2)})
            state = await cluster.until_led(topic, 0, leader=1)
            only_leader = LeaderAndIsr(1, (1,), 0, state.controller_epoch, state.version)
            partition = TopicPartition(topic, 0)
            assert await cluster.store.update_partition_state(partition, only_leader) is not None
        await cluster.stop(1)
        for topic in ("t", "u"):
            await cluster.until_led(topic, 0, leader=-1)
        controller = cluster.controllers[0]
        allowed = {"unclean.leader.election.enable": "true"}
        await cluster.store.set_config(znodes.TOPIC_CONFIGS, "u", allowed)
        controller.enable_unclean_election_in("u")
        assert (await cluster.until_led("u", 0, leader=2)).isr == (2,)
        assert (await cluster.state("t")) == await cluster.until_led("t", 0, leader=-1)
        controller.set_unclean_election(False)
        controller.set_unclean_election(True)
        assert (await cluster.until_led("t", 0, leader=2)).isr == (2,)

    run(zookeeper_connect, scenario)


def epoch_of_last_request(broker: StandInBroker) -> int:
    epoch: int = broker.requests[-1].broker_epoch  # type: ignore[attr-defined]
    return epoch


def test_broker_that_bounces_quickly_is_told_everything_under_its_new_epoch(
    zookeeper_connect: str,
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.until(lambda: cluster.active == [0])
        await cluster.start(1)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
        await cluster.store.create_topic("t", {0: (1, 0)})
        await cluster.store.create_topic("u", {0: (1,)})
        state = await cluster.until_led("t", 0, leader=1)
        await cluster.until_led("u", 0, leader=1)
        before = cluster.brokers[1].info
        context = cluster.controllers[0].context
        assert context is not None
        # One change of /brokers/ids is all that the controller gets to see.
        client, path = cluster.store.client, znodes.broker(1)
        data = (await client.get(path)).data
        await client.multi([Delete(path), Create(path, ephemeral=True), SetData(path, data)])
        await cluster.until(lambda: context.brokers.get(1, before).epoch > before.epoch)
        moved = await cluster.until_led("t", 0, leader=0)
        assert (moved.isr, moved.leader_epoch) == ((0,), state.leader_epoch + 1)
        alone = await cluster.until_led("u", 0, leader=1)
        assert alone.leader_epoch == 2  # without a leader for a moment, then led again

        new_epoch = context.brokers[1].epoch
        await cluster.until(lambda: epoch_of_last_request(cluster.brokers[1]) == new_epoch)

    run(zookeeper_connect, scenario)


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        (znodes.ISR_CHANGES, znodes.ISR_CHANGE_PREFIX),
        (znodes.LOG_DIR_EVENTS, znodes.LOG_DIR_EVENT_PREFIX),
    ],
)
def test_notice_that_nobody_can_read_is_dropped(
    zookeeper_connect: str, path: str, prefix: str
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.start(0)
        await cluster.until(lambda: cluster.active == [0])
        for data in (b"", b"{}", b"[]"):
            await cluster.store.client.create(prefix, data, sequential=True)

        async def dropped() -> bool:
            return not await cluster.store.client.children(path)

        await cluster.until(dropped)

    run(zookeeper_connect, scenario)
