"""Partitions move to other brokers, step by step, over failures and changes of mind."""

from dataclasses import replace

import pytest

from controller import znodes
from controller.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition
from controller.metadata_store import ControllerMovedError
from controller.reassignment import Verdict
from network.protocol.errors import ErrorCode
from network.protocol.messages.stop_replica import StopReplicaRequest
from tests.support.cluster import StandInCluster, run_cluster

T0 = TopicPartition("t", 0)


async def topic_on(cluster: StandInCluster, *replicas: int) -> LeaderAndIsr:
    await cluster.store.create_topic("t", {0: replicas, 1: (0,)})
    return await cluster.until_led("t", 0, leader=replicas[0])


async def assignment(cluster: StandInCluster) -> ReplicaAssignment:
    """As ZooKeeper has it; the other partition must never be touched."""
    partitions = (await cluster.store.assignments(["t"]))["t"]
    assert partitions[1] == ReplicaAssignment((0,))
    return partitions[0]


async def until_on(cluster: StandInCluster, *replicas: int) -> None:
    wanted = ReplicaAssignment(replicas)

    async def there() -> bool:
        return await assignment(cluster) == wanted

    await cluster.until(there)
    controller = next(one for one in cluster.controllers.values() if one.is_active)
    assert await controller.list_reassignments() == {}


async def catch_up(cluster: StandInCluster, *in_sync: int) -> None:
    """What the leader does once followers have all its records."""

    async def written() -> bool:
        state = await cluster.state("t")
        assert state is not None
        grown = replace(state, isr=in_sync)  # on condition that the controller writes nothing now
        return await cluster.store.update_partition_state(T0, grown) is not None

    await cluster.until(written)


def deleted_on(cluster: StandInCluster, broker: int) -> list[str]:
    return [
        topic.name
        for request in cluster.brokers[broker].requests
        if isinstance(request, StopReplicaRequest) and request.delete_partitions
        for topic in request.topics
    ]


def test_partition_moves_once_its_new_replicas_are_in_sync(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        before = await topic_on(cluster, 0, 1)
        controller = cluster.controllers[0]
        assert await controller.alter_reassignments({T0: (2, 1)}) == {T0: Verdict()}
        moving = ReplicaAssignment((2, 1, 0), adding=(2,), removing=(0,))
        assert await assignment(cluster) == moving
        assert await controller.list_reassignments() == {T0: moving}
        assert await controller.list_reassignments([TopicPartition("t", 1)]) == {}
        await cluster.until(lambda: T0 in cluster.brokers[2].replicas)
        told = cluster.brokers[2].replicas[T0]
        assert (told.is_new, told.adding_replicas, told.removing_replicas) == (True, [2], [0])
        assert told.leader_epoch == before.leader_epoch + 1
        assert cluster.brokers[0].replicas[T0].leader == 0

        await catch_up(cluster, 0, 1, 2)
        await until_on(cluster, 2, 1)
        state = await cluster.until_led("t", 0, leader=2)
        assert set(state.isr) == {1, 2}
        await cluster.until(lambda: T0 not in cluster.brokers[0].replicas)
        assert deleted_on(cluster, 0) == ["t"]
        assert deleted_on(cluster, 1) == deleted_on(cluster, 2) == []
        for broker in cluster.brokers.values():
            await cluster.until(lambda one=broker: one.metadata[T0].replicas == [2, 1])  # type: ignore[misc]

    run_cluster(zookeeper_connect, scenario, brokers=3)


def test_new_order_and_fewer_replicas_need_no_waiting(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0, 1)
        controller = cluster.controllers[0]
        assert await controller.alter_reassignments({T0: (1, 0)}) == {T0: Verdict()}
        await until_on(cluster, 1, 0)
        assert (await cluster.until_led("t", 0, leader=0)).isr == (0, 1)
        assert await controller.alter_reassignments({T0: (1,)}) == {T0: Verdict()}
        await until_on(cluster, 1)
        assert (await cluster.until_led("t", 0, leader=1)).isr == (1,)
        await cluster.until(lambda: T0 not in cluster.brokers[0].replicas)

    run_cluster(zookeeper_connect, scenario)


def test_move_can_be_ended_and_replaced_while_it_waits(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0)
        controller = cluster.controllers[0]
        await controller.alter_reassignments({T0: (1,)})
        await cluster.until(lambda: T0 in cluster.brokers[1].replicas)
        await controller.alter_reassignments({T0: (2,)})
        assert await assignment(cluster) == ReplicaAssignment((2, 0), (2,), (0,))
        await cluster.until(lambda: T0 in cluster.brokers[2].replicas)
        await cluster.until(lambda: T0 not in cluster.brokers[1].replicas)
        assert deleted_on(cluster, 1) == ["t"]

        assert await controller.alter_reassignments({T0: None}) == {T0: Verdict()}
        await until_on(cluster, 0)
        await cluster.until(lambda: T0 not in cluster.brokers[2].replicas)
        assert (await cluster.until_led("t", 0, leader=0)).isr == (0,)
        verdicts = await controller.alter_reassignments({T0: None})
        assert verdicts[T0].code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    run_cluster(zookeeper_connect, scenario, brokers=3)


@pytest.mark.parametrize("target", [(), (0, 0), (-1,), (0, 7)])
def test_target_that_makes_no_sense_is_refused(
    zookeeper_connect: str, target: tuple[int, ...]
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0)
        verdicts = await cluster.controllers[0].alter_reassignments({T0: target})
        assert verdicts[T0].code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert verdicts[T0].message
        assert await assignment(cluster) == ReplicaAssignment((0,))

    run_cluster(zookeeper_connect, scenario, brokers=1)


def test_unknown_partition_and_other_controllers_are_refused(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0)
        unknown = TopicPartition("t", 9)
        verdicts = await cluster.controllers[0].alter_reassignments({unknown: (1,), T0: (0,)})
        assert verdicts[unknown].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert verdicts[T0] == Verdict()
        with pytest.raises(ControllerMovedError):
            await cluster.controllers[1].alter_reassignments({T0: (1,)})
        with pytest.raises(ControllerMovedError):
            await cluster.controllers[1].list_reassignments()

    run_cluster(zookeeper_connect, scenario)


def test_next_controller_goes_on_with_a_move(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 1)
        await cluster.controllers[0].alter_reassignments({T0: (2,)})
        await cluster.until(lambda: T0 in cluster.brokers[2].replicas)
        await cluster.stop(0)
        await cluster.until(lambda: len(cluster.active) == 1)
        await catch_up(cluster, 1, 2)
        partition_zero = ReplicaAssignment((2,))

        async def there() -> bool:
            return (await cluster.store.assignments(["t"]))["t"][0] == partition_zero

        await cluster.until(there)
        assert (await cluster.until_led("t", 0, leader=2)).isr == (2,)
        await cluster.until(lambda: T0 not in cluster.brokers[1].replicas)

    run_cluster(zookeeper_connect, scenario, brokers=3)


def test_newcomer_that_was_away_is_told_when_it_is_back(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0)
        await cluster.controllers[0].alter_reassignments({T0: (1,)})
        await cluster.until(lambda: T0 in cluster.brokers[1].replicas)
        await cluster.stop(1)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0})
        await cluster.start(1)
        await cluster.until(lambda: T0 in cluster.brokers[1].replicas)
        await catch_up(cluster, 0, 1)
        await until_on(cluster, 1)

    run_cluster(zookeeper_connect, scenario)


def test_znode_moves_partitions_and_goes_with_the_last_of_them(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0, 1)
        unknown, one = TopicPartition("u", 0), TopicPartition("t", 1)
        wish = znodes.encode_reassignment({T0: (1, 0), unknown: (0,), one: (1,)})
        client = cluster.store.client
        await client.create(znodes.REASSIGN_PARTITIONS, wish)

        async def only_one_is_left() -> bool:
            node = await client.get(znodes.REASSIGN_PARTITIONS)
            return znodes.decode_reassignment(node.data) == {one: (1,)}

        await cluster.until(only_one_is_left)
        assert await cluster.controllers[0].list_reassignments() == {
            one: ReplicaAssignment((1, 0), (1,), (0,))
        }
        await cluster.controllers[0].alter_reassignments({one: None})
        assert await client.exists(znodes.REASSIGN_PARTITIONS) is None
        await until_on(cluster, 1, 0)

        await client.create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({T0: (0,)}))
        await until_on(cluster, 0)

        async def gone() -> bool:
            return await client.exists(znodes.REASSIGN_PARTITIONS) is None

        await cluster.until(gone)

    run_cluster(zookeeper_connect, scenario)


def test_znode_that_makes_no_sense_is_left_alone(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0)
        await cluster.store.client.create(znodes.REASSIGN_PARTITIONS, b'{"partitions":[1]}')
        verdicts = await cluster.controllers[0].alter_reassignments({T0: (0,)})
        assert verdicts == {T0: Verdict()}

    run_cluster(zookeeper_connect, scenario, brokers=1)


def test_topic_is_deleted_after_its_partitions_have_moved(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await topic_on(cluster, 0)
        controller = cluster.controllers[0]
        await controller.alter_reassignments({T0: (1,)})
        await cluster.store.mark_for_deletion("t")
        context = controller.context
        assert context is not None
        await cluster.until(lambda: "t" in context.topics_not_to_delete_yet)
        verdicts = await controller.alter_reassignments({T0: (0,)})
        assert verdicts[T0].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await cluster.store.topics() == {"t"}
        await catch_up(cluster, 0, 1)

        async def gone() -> bool:
            return not await cluster.store.topics()

        await cluster.until(gone)
        assert await controller.list_reassignments() == {}

    run_cluster(zookeeper_connect, scenario, delete_topics=True)
