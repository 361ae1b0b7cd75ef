"""Stock clients in groups: members come and go under load, and nothing is lost or done twice.

Each client with every strategy it has: librdkafka knows no eager sticky, aiokafka no cooperative
one. And clients of different make in one group, wherever they have a strategy in common.
"""

import os
from collections.abc import Iterator

import pytest

from tests.interop.group_clients import aiokafka, confluent, kafka_python
from tests.interop.group_work import GroupClient, Team, work_through
from tests.support.broker import BrokerProcess, running_broker

CHANGES = 3
SOAK_CHANGES = 100
SHORT_SOAK_CHANGES = 5

STRATEGIES: dict[tuple[GroupClient, ...], tuple[str, ...]] = {
    (confluent,): ("range", "roundrobin", "cooperative-sticky"),
    (kafka_python,): ("range", "roundrobin", "sticky", "cooperative-sticky"),
    (aiokafka,): ("range", "roundrobin", "sticky"),
    (confluent, kafka_python, aiokafka): ("range", "roundrobin"),
    (kafka_python, aiokafka): ("sticky",),
    (confluent, kafka_python): ("cooperative-sticky",),
}
TEAMS = [
    Team(clients, strategy, auto_commit)
    for clients, strategies in STRATEGIES.items()
    for strategy in strategies
    for auto_commit in (False, True)
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with running_broker(tmp_path_factory.mktemp("data"), settings) as broker:
        yield broker


@pytest.mark.parametrize("team", TEAMS, ids=str)
def test_members_come_and_go(broker: BrokerProcess, team: Team) -> None:
    work_through(team, broker.bootstrap, str(team).replace("+", "-"), changes=CHANGES)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("team", TEAMS, ids=str)
def test_members_come_and_go_a_hundred_times(broker: BrokerProcess, team: Team) -> None:
    is_short = os.environ.get("BARNABAS_SOAK") == "short"
    work_through(
        team,
        broker.bootstrap,
        f"soak-{team}".replace("+", "-"),
        changes=SHORT_SOAK_CHANGES if is_short else SOAK_CHANGES,
    )
