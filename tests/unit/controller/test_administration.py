"""What the controller does on request: deletions, elections, orderly shutdowns, notices."""

import pytest

from controller import znodes
from controller.cluster import LEADER_DURING_DELETE, LeaderAndIsr, TopicPartition
from controller.controlled_shutdown import BrokerNotAvailableError, StaleBrokerEpochError
from controller.elections import ElectionFailedError, Strategy
from controller.metadata_store import ControllerMovedError
from controller.preferred_elections import ElectionNotNeededError, UnknownPartitionError
from tests.support.cluster import StandInCluster, run_cluster

T0 = TopicPartition("t", 0)


async def until_gone(cluster: StandInCluster, topic: str) -> None:
    async def gone() -> bool:
        wanted = await cluster.store.topics_to_delete()
        return topic not in wanted and topic not in await cluster.store.topics()

    await cluster.until(gone)


def test_deleted_topic_is_gone_from_brokers_and_zookeeper(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (0, 1), 1: (1, 0)}, {"retention.ms": "1"})
        await cluster.store.create_topic("kept", {0: (0,)})
        await cluster.until_led("t", 1, leader=1)
        await cluster.until_led("kept", 0, leader=0)
        await cluster.store.mark_for_deletion("t")
        await until_gone(cluster, "t")
        assert await cluster.store.client.children("/config/topics") == ["kept"]
        for broker in cluster.brokers.values():
            assert not [one for one in broker.replicas if one.topic == "t"]
            assert broker.metadata[T0].leader == LEADER_DURING_DELETE
        await cluster.store.create_topic("t", {0: (1,)})
        state = await cluster.until_led("t", 0, leader=1)
        assert state.leader_epoch == 0

    run_cluster(zookeeper_connect, scenario, delete_topics=True)


def test_deletion_waits_for_the_brokers_that_are_down(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (0, 1)})
        await cluster.until_led("t", 0, leader=0)
        await cluster.stop(1)
        await cluster.until(lambda: cluster.brokers[0].live_brokers == {0})
        await cluster.store.mark_for_deletion("t")
        await cluster.until(lambda: T0 not in cluster.brokers[0].replicas)
        assert await cluster.store.topics() == {"t"}
        await cluster.start(1)
        await until_gone(cluster, "t")

    run_cluster(zookeeper_connect, scenario, delete_topics=True)


def test_deletion_goes_on_after_a_change_of_the_controller(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (1,)})
        await cluster.until_led("t", 0, leader=1)
        cluster.brokers[1].is_reachable = False
        await cluster.store.mark_for_deletion("t")
        await cluster.until(lambda: T0 in cluster.brokers[0].metadata)
        await cluster.stop(0)
        cluster.brokers[1].is_reachable = True
        await until_gone(cluster, "t")
        assert cluster.controllers[1].epoch == 2

    run_cluster(zookeeper_connect, scenario, delete_topics=True)


def test_replica_that_cannot_be_deleted_is_tried_again_when_its_broker_is_back(
    zookeeper_connect: str,
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (0, 1)})
        await cluster.until_led("t", 0, leader=0)
        cluster.brokers[1].undeletable = {T0}
        await cluster.store.mark_for_deletion("t")
        await cluster.until(lambda: T0 not in cluster.brokers[0].replicas)
        context = cluster.controllers[0].context
        assert context is not None
        await cluster.until(lambda: "t" in context.topics_not_to_delete_yet)
        await cluster.stop(1)
        await cluster.start(1)
        await until_gone(cluster, "t")

    run_cluster(zookeeper_connect, scenario, delete_topics=True)


def test_deletion_is_refused_where_it_is_disabled(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (0,)})
        await cluster.until_led("t", 0, leader=0)
        await cluster.store.mark_for_deletion("t")

        async def refused() -> bool:
            return not await cluster.store.topics_to_delete()

        await cluster.until(refused)
        assert await cluster.store.topics() == {"t"}
        assert cluster.brokers[0].metadata[T0].leader == 0

    run_cluster(zookeeper_connect, scenario, delete_topics=False)


def test_leaving_broker_hands_its_leadership_over(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (1, 0), 1: (0, 1)})
        await cluster.store.create_topic("alone", {0: (1,)})
        await cluster.until_led("t", 0, leader=1)
        await cluster.until_led("t", 1, leader=0)
        await cluster.until_led("alone", 0, leader=1)
        controller, leaving = cluster.controllers[0], cluster.brokers[1].info
        assert await controller.controlled_shutdown(1, leaving.epoch) == set()
        assert (await cluster.until_led("t", 0, leader=0)).isr == (0,)
        assert (await cluster.until_led("t", 1, leader=0)).isr == (0,)
        with pytest.raises(StaleBrokerEpochError):
            await controller.controlled_shutdown(1, leaving.epoch - 1)
        with pytest.raises(BrokerNotAvailableError):
            await controller.controlled_shutdown(5, -1)
        with pytest.raises(ControllerMovedError):
            await cluster.controllers[1].controlled_shutdown(1, leaving.epoch)

    run_cluster(zookeeper_connect, scenario)


async def led_by_the_second(cluster: StandInCluster) -> None:
    """A topic whose preferred leader, broker 1, was away and is in sync again."""
    await cluster.store.create_topic("t", {0: (1, 0)})
    await cluster.until_led("t", 0, leader=1)
    await cluster.stop(1)
    state = await cluster.until_led("t", 0, leader=0)
    await cluster.start(1)
    await cluster.until(lambda: cluster.brokers[1].live_brokers == {0, 1})
    in_sync = LeaderAndIsr(0, (0, 1), state.leader_epoch, state.controller_epoch, state.version)
    assert await cluster.store.update_partition_state(T0, in_sync) is not None


def test_preferred_leaders_are_elected_on_request(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await led_by_the_second(cluster)
        controller = cluster.controllers[0]
        unknown = TopicPartition("t", 9)
        results = await controller.elect_leaders([T0, unknown], Strategy.PREFERRED)
        elected = results[T0]
        assert isinstance(elected, LeaderAndIsr)
        assert elected.leader == 1
        assert isinstance(results[unknown], UnknownPartitionError)
        await cluster.until_led("t", 0, leader=1)
        again = await controller.elect_leaders(None, Strategy.PREFERRED)
        assert isinstance(again[T0], ElectionNotNeededError)
        unclean = await controller.elect_leaders([T0], Strategy.UNCLEAN)
        assert isinstance(unclean[T0], ElectionFailedError)

    run_cluster(zookeeper_connect, scenario)


def test_preferred_leaders_are_elected_by_znode(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await led_by_the_second(cluster)
        wish = znodes.encode_preferred_election([T0])
        await cluster.store.client.create(znodes.PREFERRED_ELECTION, wish)
        await cluster.until_led("t", 0, leader=1)

        async def done() -> bool:
            return await cluster.store.client.exists(znodes.PREFERRED_ELECTION) is None

        await cluster.until(done)

    run_cluster(zookeeper_connect, scenario)


def test_leaders_are_balanced_from_time_to_time(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.term._FIRST_BALANCE_CHECK_SECONDS", 0.02)

    async def scenario(cluster: StandInCluster) -> None:
        await led_by_the_second(cluster)
        await cluster.until_led("t", 0, leader=1)

    run_cluster(zookeeper_connect, scenario, balance_check_seconds=0.02)


def test_changes_of_in_sync_replicas_reach_every_broker(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (0, 1)})
        state = await cluster.until_led("t", 0, leader=0)
        shrunk = LeaderAndIsr(0, (0,), 0, state.controller_epoch, state.version)
        assert await cluster.store.update_partition_state(T0, shrunk) is not None
        notice = znodes.encode_isr_change([T0])
        await cluster.store.client.create(znodes.ISR_CHANGE_PREFIX, notice, sequential=True)
        await cluster.until(lambda: cluster.brokers[1].metadata[T0].isr == [0])

        async def removed() -> bool:
            return not await cluster.store.client.children(znodes.ISR_CHANGES)

        await cluster.until(removed)

    run_cluster(zookeeper_connect, scenario)


def test_failed_log_directory_takes_its_replicas_offline(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        await cluster.store.create_topic("t", {0: (0, 1)})
        await cluster.until_led("t", 0, leader=0)
        cluster.brokers[0].failed_disk = {T0}
        notice = znodes.encode_log_dir_event(0)
        await cluster.store.client.create(znodes.LOG_DIR_EVENT_PREFIX, notice, sequential=True)
        state = await cluster.until_led("t", 0, leader=1)
        assert state.isr == (1,)

    run_cluster(zookeeper_connect, scenario)
