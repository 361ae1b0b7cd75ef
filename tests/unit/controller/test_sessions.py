"""Sessions that end, and controllers that are deposed: nobody acts on what is no longer so."""

import pytest

from controller import znodes
from controller.cluster import TopicPartition
from controller.metadata_store import ControllerMovedError
from tests.support.cluster import StandInCluster, run_cluster
from tests.support.zookeeper import BreakableConnection

T0 = TopicPartition("t", 0)


def test_broker_whose_session_expired_registers_anew_and_goes_on(zookeeper_connect: str) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        async with BreakableConnection(zookeeper_connect) as way:
            await cluster.start(0)
            await cluster.until(lambda: cluster.active == [0])
            await cluster.start(1, connect=way.connect_string, session_timeout_ms=600)
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
            way.cut()
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0})
            way.mend()
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
            epochs = [info.epoch for info in (await cluster.store.brokers()).values()]
            assert epochs[1] > cluster.brokers[1].info.epoch
            await cluster.stop(1)

    run_cluster(zookeeper_connect, scenario, brokers=0)


def test_deposed_controller_notices_and_leaves_the_cluster_to_the_next(
    zookeeper_connect: str,
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        async with BreakableConnection(zookeeper_connect) as way:
            await cluster.start(0, connect=way.connect_string, session_timeout_ms=600)
            await cluster.until(lambda: cluster.active == [0])
            await cluster.start(1)
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
            way.cut()
            await cluster.until(lambda: cluster.controllers[1].is_active)
            way.mend()
            await cluster.until(lambda: cluster.active == [1])
            await cluster.until(lambda: cluster.controllers[0].controller_id == 1)
            await cluster.until(lambda: cluster.brokers[1].live_brokers == {0, 1})
            await cluster.store.create_topic("t", {0: (0, 1)})
            await cluster.until_led("t", 0, leader=0)
            await cluster.stop(0)

    run_cluster(zookeeper_connect, scenario, brokers=0)


def test_controller_of_an_older_epoch_writes_nothing_and_gives_up_its_term(
    zookeeper_connect: str,
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        controller = await cluster.start(0)
        await cluster.until(lambda: cluster.active == [0])
        await cluster.store.create_topic("t", {0: (0,)})
        state = await cluster.until_led("t", 0, leader=0)
        later = znodes.encode_controller_epoch(7)  # as if another had been elected unseen
        await cluster.store.client.set(znodes.CONTROLLER_EPOCH, later)
        with pytest.raises(ControllerMovedError):
            await controller.alter_reassignments({T0: (0,)})
        assert await cluster.state("t") == state
        await cluster.until(lambda: controller.epoch == 8)
        await controller.alter_reassignments({T0: (0,)})
        raised = await cluster.until_led("t", 0, leader=0)
        assert (raised.leader_epoch, raised.controller_epoch) == (state.leader_epoch + 1, 8)

    run_cluster(zookeeper_connect, scenario, brokers=0)


def test_brokers_that_lost_zookeeper_together_keep_their_leadership(
    zookeeper_connect: str,
) -> None:
    async def scenario(cluster: StandInCluster) -> None:
        async with (
            BreakableConnection(zookeeper_connect) as one_way,
            BreakableConnection(zookeeper_connect) as other_way,
        ):
            for broker, way in enumerate((one_way, other_way)):
                await cluster.start(broker, connect=way.connect_string, session_timeout_ms=600)
                await cluster.until(lambda: cluster.active == [0])
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
            await cluster.store.create_topic("t", {0: (1, 0)})
            state = await cluster.until_led("t", 0, leader=1)
            one_way.cut()
            other_way.cut()

            async def nobody_is_registered() -> bool:
                return not await cluster.store.brokers()

            async def one_is_back() -> bool:
                return list(await cluster.store.brokers()) == [0]

            await cluster.until(nobody_is_registered)
            one_way.mend()
            await cluster.until(one_is_back)
            other_way.mend()
            await cluster.until(lambda: len(cluster.active) == 1)
            again = await cluster.until_led("t", 0, leader=1)
            assert again.leader_epoch == state.leader_epoch
            for broker in (0, 1):
                await cluster.stop(broker)

    run_cluster(zookeeper_connect, scenario, brokers=0)


def test_broker_that_does_not_come_back_is_not_waited_for_long(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.controller._REUNION_SECONDS", 0.2)

    async def scenario(cluster: StandInCluster) -> None:
        async with BreakableConnection(zookeeper_connect) as way:
            for broker in (0, 1):
                await cluster.start(broker, connect=way.connect_string, session_timeout_ms=600)
                await cluster.until(lambda: cluster.active == [0])
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1})
            await cluster.store.create_topic("t", {0: (1, 0)})
            await cluster.until_led("t", 0, leader=1)
            way.cut()

            async def nobody_is_registered() -> bool:
                return not await cluster.store.brokers()

            await cluster.until(nobody_is_registered)
            await cluster.stop(1)
            way.mend()
            state = await cluster.until_led("t", 0, leader=0)
            assert state.isr == (0,)
            await cluster.stop(0)

    run_cluster(zookeeper_connect, scenario, brokers=0)
