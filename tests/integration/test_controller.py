"""Brokers as processes, steered by their controllers through kills and restarts."""

import re
from contextlib import ExitStack
from pathlib import Path

from controller.cluster import TopicPartition
from network.protocol import ErrorCode
from network.protocol.messages.create_topics import CreatableTopic
from tests.support import api
from tests.support.broker import BrokerProcess, running_broker
from tests.support.brokers_on_zookeeper import (
    ask,
    create,
    on,
    wait_for_controller,
    wait_for_state,
)
from tests.support.raw_client import RawClient
from tests.support.zookeeper import zookeeper_connect

__all__ = ["zookeeper_connect"]

CONNECTING = re.compile(r"Connecting to zookeeper on (\S+)")


def zookeeper_of(broker: BrokerProcess) -> str:
    return broker.wait_for_line(CONNECTING).group(1)


def test_metadata_survives_stop_and_kill_of_broker_and_zookeeper(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    try:
        broker.start()
        connect = zookeeper_of(broker)
        cluster_id = ask(connect, lambda store: store.get_or_create_cluster_id("another"))
        create(connect, "t", 0)
        wait_for_state(connect, lambda state: state.leader == 0)
        for end in (broker.stop, broker.kill, broker.kill):
            end()
            broker.start()
            connect = zookeeper_of(broker)
            found = ask(connect, lambda store: store.get_or_create_cluster_id("another"))
            assert found == cluster_id
            assert ask(connect, lambda store: store.topics()) == {"t"}
            assert wait_for_state(connect, lambda state: state.leader == 0).isr == (0,)
    finally:
        broker.kill()


def test_killed_broker_starts_again_at_once_on_an_ensemble(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    """Its dead session would hold /brokers/ids/0 and /controller for ten minutes more."""
    broker = BrokerProcess(tmp_path / "data", on(zookeeper_connect, 0, session_timeout_ms=600_000))
    try:
        broker.start()
        first = ask(zookeeper_connect, lambda store: store.brokers())[0]
        broker.kill()
        assert 0 in ask(zookeeper_connect, lambda store: store.brokers())
        broker.start()
        second = ask(zookeeper_connect, lambda store: store.brokers())[0]
        assert second.epoch > first.epoch
        assert ask(zookeeper_connect, lambda store: store.controller_id()) == 0
    finally:
        broker.kill()


def test_second_broker_of_the_same_id_is_refused_in_one_line(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with running_broker(tmp_path / "first", on(zookeeper_connect, 7)):
        second = BrokerProcess(tmp_path / "second", on(zookeeper_connect, 7))
        second.launch()
        assert second.wait() == 1
        assert "id 7 is registered already" in second.lines[-1]
        assert "Traceback" not in second.output


def test_leadership_and_control_move_away_from_killed_brokers(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(running_broker(tmp_path / str(n), on(zookeeper_connect, n, 1000)))
            for n in range(3)
        ]
        wait_for_controller(zookeeper_connect, 0)
        create(zookeeper_connect, "t", 1, 2)
        create(zookeeper_connect, "u", 0)
        wait_for_state(zookeeper_connect, lambda state: state.isr == (1, 2))
        brokers[1].kill()
        state = wait_for_state(zookeeper_connect, lambda state: state.leader == 2)
        assert (state.isr, state.controller_epoch) == ((2,), 1)

        brokers[0].kill()
        wait_for_controller(zookeeper_connect, 2)
        u0 = TopicPartition("u", 0)
        state = wait_for_state(zookeeper_connect, lambda state: state.leader == -1, u0)
        assert (state.isr, state.controller_epoch) == ((0,), 2)

        brokers[0].start()
        wait_for_state(zookeeper_connect, lambda state: state.leader == 0, u0)
        assert ask(zookeeper_connect, lambda store: store.controller_id()) == 2


def test_replicas_of_a_new_topic_cover_the_racks(zookeeper_connect: str, tmp_path: Path) -> None:
    racks = {0: "near", 1: "near", 2: "far"}
    with ExitStack() as stack:
        brokers = []
        for number, rack in racks.items():
            settings = on(zookeeper_connect, number) | {"broker.rack": rack}
            data = tmp_path / str(number)
            brokers.append(stack.enter_context(running_broker(data, settings)))
        with RawClient(brokers[0].port) as client:
            topic = CreatableTopic(name="t", num_partitions=9, replication_factor=2)
            assert api.create(client, topic).error_code == ErrorCode.NONE
            partitions = api.describe(client, "t").partitions
        assert len(partitions) == 9
        for one in partitions:
            assert {racks[replica] for replica in one.replica_nodes} == {"near", "far"}
            assert one.leader_id == one.replica_nodes[0]
