"""Groups over the life of a broker: restarts, kills, deleted topics."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.support.api import new_topic
from tests.support.broker import BrokerProcess
from tests.support.group_api import (
    become_only_member,
    commit,
    committed,
    described,
    find_coordinator,
    heartbeat,
    join,
    new_group,
    wait_until_loaded,
)
from tests.support.raw_client import RawClient
from tests.support.waiting import eventually


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
    with BrokerProcess(tmp_path, settings) as broker:
        yield broker


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_acknowledged_commits_and_groups_survive(broker: BrokerProcess, end: str) -> None:
    groups = [f"group-{number}" for number in range(10)]
    with RawClient(broker.port) as client:
        topic = new_topic(client)
        members = {}
        for number, group in enumerate(groups):
            find_coordinator(client, group)
            joined = members[group] = become_only_member(client, group)
            for offset in range(number + 1):
                code = commit(
                    client, group, topic, offset, member_id=joined.member_id, generation=1
                )
                assert code == ErrorCode.NONE
        if end == "kill":
            broker.kill()
    if end == "stop":
        assert broker.stop() == 0
    broker.start()
    with RawClient(broker.port) as client:
        for number, group in enumerate(groups):
            find_coordinator(client, group)
            wait_until_loaded(client, group)
            assert committed(client, group, topic).committed_offset == number
            assert heartbeat(client, group, members[group]) == ErrorCode.NONE


def test_members_that_wait_are_answered_before_a_stop(broker: BrokerProcess) -> None:
    with RawClient(broker.port) as client:
        group = new_group(client)
        become_only_member(client, group)
        with RawClient(broker.port) as other, ThreadPoolExecutor() as pool:
            waiting = pool.submit(join, other, group)
            eventually(lambda: len(described(client, group).members) == 2)
            assert broker.stop() == 0
            assert waiting.result(10).error_code == ErrorCode.NOT_COORDINATOR


def test_offsets_of_a_deleted_topic_are_forgotten(broker: BrokerProcess) -> None:
    with RawClient(broker.port) as client:
        group, topic, kept = new_group(client), new_topic(client), new_topic(client)
        commit(client, group, topic, 5)
        commit(client, group, kept, 6)
        client.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=20_000), 4)
        eventually(lambda: committed(client, group, topic).committed_offset == -1)
        assert committed(client, group, kept).committed_offset == 6
