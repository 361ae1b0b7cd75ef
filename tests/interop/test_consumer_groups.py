"""Stock clients in groups: members come and go under load, and nothing is lost or done twice."""

import os
from collections.abc import Iterator

import pytest

from tests.interop import group_clients
from tests.interop.group_work import GroupClient, work_through
from tests.support.broker import BrokerProcess, running_broker

CHANGES = 5
SOAK_CHANGES = 100
SHORT_SOAK_CHANGES = 12

MEMBERS: list[tuple[GroupClient, str, bool]] = [
    (group_clients.confluent, "range", False),
    (group_clients.confluent, "roundrobin", True),
    (group_clients.confluent, "cooperative-sticky", False),
    (group_clients.kafka_python, "range", True),
    (group_clients.kafka_python, "roundrobin", False),
    (group_clients.kafka_python, "sticky", False),
    (group_clients.aiokafka, "range", False),
    (group_clients.aiokafka, "roundrobin", True),
    (group_clients.aiokafka, "sticky", False),
]


def name(member: tuple[GroupClient, str, bool]) -> str:
    client, strategy, auto_commit = member
    return f"{client.__name__}-{strategy}-{'auto' if auto_commit else 'manual'}"  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with running_broker(tmp_path_factory.mktemp("data"), settings) as broker:
        yield broker


@pytest.mark.parametrize("member", MEMBERS, ids=name)
def test_members_come_and_go(broker: BrokerProcess, member: tuple[GroupClient, str, bool]) -> None:
    client, strategy, auto_commit = member
    work_through(
        client,
        broker.bootstrap,
        name(member),
        strategy,
        auto_commit=auto_commit,
        changes=CHANGES,
    )


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("member", MEMBERS, ids=name)
def test_members_come_and_go_a_hundred_times(
    broker: BrokerProcess, member: tuple[GroupClient, str, bool]
) -> None:
    client, strategy, auto_commit = member
    is_short = os.environ.get("BARNABAS_SOAK") == "short"
    work_through(
        client,
        broker.bootstrap,
        f"soak-{name(member)}",
        strategy,
        auto_commit=auto_commit,
        changes=SHORT_SOAK_CHANGES if is_short else SOAK_CHANGES,
    )
