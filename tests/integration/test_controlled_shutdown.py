"""A broker that is asked to stop lets others lead first."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from controller.cluster import TopicPartition
from network.protocol import ErrorCode
from network.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from tests.support.broker import BrokerProcess
from tests.support.brokers_on_zookeeper import (
    T0,
    ask,
    create,
    running_brokers,
    wait_for_controller,
    wait_for_state,
)
from tests.support.raw_client import RawClient
from tests.support.zookeeper import BreakableConnection, zookeeper_connect

__all__ = ["zookeeper_connect"]

SUCCEEDED = "Controlled shutdown succeeded"
UNFINISHED = "Stopping without having handed over all leadership"
U0 = TopicPartition("u", 0)


def steps_of_stop(broker: BrokerProcess) -> list[str]:
    said = ("Starting controlled shutdown", SUCCEEDED, UNFINISHED, "shut down completed")
    return [step for line in broker.lines for step in said if step in line]


def test_leadership_moves_away_before_each_of_three_brokers_stops(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with running_brokers(zookeeper_connect, tmp_path, 3) as brokers:
        wait_for_controller(zookeeper_connect, 0)
        create(zookeeper_connect, "t", 1, 2, 0)
        create(zookeeper_connect, "u", 0)
        wait_for_state(zookeeper_connect, lambda state: state.isr == (1, 2, 0))
        wait_for_state(zookeeper_connect, lambda state: state.leader == 0, U0)

        assert brokers[1].stop() == 0
        assert steps_of_stop(brokers[1]) == [
            "Starting controlled shutdown",
            SUCCEEDED,
            "shut down completed",
        ]
        state = wait_for_state(zookeeper_connect, lambda state: state.leader == 2)
        assert (state.isr, state.leader_epoch) == ((2, 0), 1)

        # The controller hands over as well: to itself first, then to whoever is elected next.
        assert brokers[0].stop() == 0
        assert SUCCEEDED in steps_of_stop(brokers[0])
        assert wait_for_state(zookeeper_connect, lambda state: state.isr == (2,)).leader == 2
        assert wait_for_state(zookeeper_connect, lambda state: state.leader == -1, U0).isr == (0,)

        # Nobody else is left to lead, and waiting would change nothing: it asks once.
        assert brokers[2].stop() == 0
        assert brokers[2].output.count("nobody else can lead t-0") == 1
        assert UNFINISHED in steps_of_stop(brokers[2])


def test_stop_is_tried_again_and_goes_on_where_leadership_cannot_move(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    settings = {
        "controlled.shutdown.max.retries": "2",
        "controlled.shutdown.retry.backoff.ms": "50",
    }
    with running_brokers(zookeeper_connect, tmp_path, 2, settings) as brokers:
        create(zookeeper_connect, "t", 1, 0)
        state = wait_for_state(zookeeper_connect, lambda state: state.isr == (1, 0))
        alone = replace(state, isr=(1,))
        ask(zookeeper_connect, lambda store: store.update_partition_state(T0, alone))
        assert brokers[1].stop() == 0
        refusals = re.findall("nobody else can lead t-0", brokers[1].output)
        assert len(refusals) == 2
        assert UNFINISHED in steps_of_stop(brokers[1])
        assert wait_for_state(zookeeper_connect, lambda state: state.leader == -1).isr == (1,)


def test_no_leadership_is_handed_over_where_that_is_switched_off(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    off = {"controlled.shutdown.enable": "false"}
    with running_brokers(zookeeper_connect, tmp_path, 1, off) as brokers:
        assert brokers[0].stop() == 0
        assert steps_of_stop(brokers[0]) == ["shut down completed"]


@pytest.mark.parametrize("version", range(4))
def test_controlled_shutdown_api(zookeeper_connect: str, tmp_path: Path, version: int) -> None:
    with running_brokers(zookeeper_connect, tmp_path, 2) as brokers:
        wait_for_controller(zookeeper_connect, 0)
        create(zookeeper_connect, "t", 1, 0)
        wait_for_state(zookeeper_connect, lambda state: state.isr == (1, 0))
        epoch = ask(zookeeper_connect, lambda store: store.brokers())[1].epoch

        def request(broker: int, broker_epoch: int, port: int) -> ControlledShutdownResponse:
            message = ControlledShutdownRequest(broker_id=broker, broker_epoch=broker_epoch)
            with RawClient(port) as client:
                answer: ControlledShutdownResponse = client.ask(message, version)
                return answer

        moved = request(1, epoch, brokers[1].port)
        assert moved.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        unknown = request(9, -1, brokers[0].port)
        assert unknown.error_code == ErrorCode.BROKER_NOT_AVAILABLE
        if version >= 2:
            stale = request(1, epoch - 1, brokers[0].port)
            assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
        done = request(1, epoch, brokers[0].port)
        assert (done.error_code, done.remaining_partitions) == (ErrorCode.NONE, [])
        assert wait_for_state(zookeeper_connect, lambda state: state.leader == 0).isr == (0,)
        left = request(0, -1, brokers[0].port)
        assert left.error_code == ErrorCode.NONE
        assert [(one.topic_name, one.partition_index) for one in left.remaining_partitions] == [
            ("t", 0)
        ]


def test_stop_does_not_wait_for_a_zookeeper_that_is_gone(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    def lose_zookeeper(connect: str, cut: Callable[[], object]) -> None:
        with running_brokers(connect, tmp_path, 1) as brokers:
            cut()
            brokers[0].wait_for_line(re.compile("the connection to ZooKeeper .* is lost"))
            assert brokers[0].stop() == 0
            assert UNFINISHED in steps_of_stop(brokers[0])

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with BreakableConnection(zookeeper_connect) as way:
            await asyncio.to_thread(
                lose_zookeeper, way.connect_string, lambda: loop.call_soon_threadsafe(way.cut)
            )

    asyncio.run(scenario())
