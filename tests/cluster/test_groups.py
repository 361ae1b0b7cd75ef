"""Groups on three brokers: each looks after those whose partition of `__consumer_offsets` it leads.

That topic has one replica, as followers do not fetch yet: while a coordinator is away its groups
wait, and when it is back they go on with all that they have committed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from broker.groups.partitions import partition_for
from broker.topic_names import GROUP_METADATA_TOPIC
from network.protocol import ErrorCode
from network.protocol.messages.find_coordinator import FindCoordinatorRequest
from network.protocol.messages.join_group import JoinGroupResponse
from network.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.interop.commit_log import commits_of
from tests.interop.group_clients import aiokafka, confluent, kafka_python
from tests.interop.group_ledger import check
from tests.interop.group_work import PARTITIONS, Crew, Team, committed, producing
from tests.support import group_api
from tests.support.api import describe
from tests.support.broker import BrokerProcess
from tests.support.brokers_on_zookeeper import ask, running_brokers
from tests.support.raw_client import RawClient
from tests.support.waiting import eventually
from tests.support.zookeeper import zookeeper_connect

__all__ = ["zookeeper_connect"]

BROKERS = 3
GROUP_PARTITIONS = 6
# A request that went out to a coordinator that is killed may never be answered.
ANSWER_SECONDS = 2.0
GROUPS = [f"group-{number}" for number in range(20)]
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(GROUP_PARTITIONS),
}


class Cluster:
    """The brokers, and who coordinates which group."""

    def __init__(self, connect: str, brokers: list[BrokerProcess]) -> None:
        self.connect = connect
        self.brokers = brokers
        with RawClient(brokers[0].port) as client:
            group_api.find_coordinator(client, GROUPS[0])
            topic = describe(client, GROUP_METADATA_TOPIC)
        leaders = {one.partition_index: one.leader_id for one in topic.partitions}
        self.coordinators = {
            group: leaders[partition_for(group, GROUP_PARTITIONS)] for group in GROUPS
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def group_of(self, broker: int) -> str:
        return next(group for group, one in self.coordinators.items() if one == broker)

    def create_topic(self, name: str, places: Mapping[int, Sequence[int]]) -> None:
        """Make a topic and wait until every broker knows who leads its partitions."""
        ask(self.connect, lambda store: store.create_topic(name, places))

        def is_known(broker: BrokerProcess) -> bool:
            with RawClient(broker.port) as client:
                topic = describe(client, name)
            led = [one for one in topic.partitions if one.error_code == ErrorCode.NONE]
            return len(led) == len(places)

        for broker in self.brokers:
            eventually(lambda broker=broker: is_known(broker))  # type: ignore[misc]

    def wait_until_coordinated(self) -> None:
        """Every broker names every coordinator, and that has read its log."""

        def is_ready(group: str, asked: BrokerProcess) -> bool:
            with RawClient(asked.port) as client:
                found = client.ask(FindCoordinatorRequest(key=group), 3)
            if found.error_code != ErrorCode.NONE:
                return False
            assert found.node_id == self.coordinators[group]
            if found.port != self.brokers[found.node_id].port:
                return False
            with RawClient(found.port) as client:
                answer = client.ask(OffsetFetchRequest(group_id=group, topics=None), 7)
            return bool(answer.error_code == ErrorCode.NONE)

        for group in GROUPS:
            for asked in self.brokers:
                eventually(lambda group=group, asked=asked: is_ready(group, asked), 60)  # type: ignore[misc]


@pytest.fixture
def cluster(zookeeper_connect: str, tmp_path: Path) -> Iterator[Cluster]:
    with running_brokers(
        zookeeper_connect, tmp_path, BROKERS, SETTINGS, session_timeout_ms=3000
    ) as brokers:
        cluster = Cluster(zookeeper_connect, brokers)
        cluster.wait_until_coordinated()
        yield cluster


def test_groups_are_spread_and_kept_by_their_coordinators_through_kills(cluster: Cluster) -> None:
    assert set(cluster.coordinators.values()) == set(range(BROKERS))
    cluster.create_topic("t", {0: (0,)})
    members = {}
    for number, group in enumerate(GROUPS):
        coordinator = cluster.coordinators[group]
        with RawClient(cluster.brokers[coordinator].port) as client:
            joined = members[group] = group_api.become_only_member(client, group)
            code = group_api.commit(
                client, group, "t", number, member_id=joined.member_id, generation=1
            )
            assert code == ErrorCode.NONE
        with RawClient(cluster.brokers[(coordinator + 1) % BROKERS].port) as client:
            for name, ask_wrong_broker in questions(client, group).items():
                assert ask_wrong_broker() == ErrorCode.NOT_COORDINATOR, name
    for broker in cluster.brokers:
        broker.kill()
        broker.start()
    cluster.wait_until_coordinated()
    for number, group in enumerate(GROUPS):
        with RawClient(cluster.brokers[cluster.coordinators[group]].port) as client:
            assert group_api.committed(client, group, "t").committed_offset == number
            if group_api.described(client, group).members:  # its session may be over by now
                assert group_api.heartbeat(client, group, members[group]) == ErrorCode.NONE


def questions(client: RawClient, group: str) -> dict[str, Callable[[], int]]:
    stale = JoinGroupResponse(member_id="m", generation_id=1)
    every_offset = OffsetFetchRequest(group_id=group, topics=None)
    return {
        "join": lambda: group_api.join(client, group).error_code,
        "sync": lambda: group_api.sync(client, group, stale).error_code,
        "heartbeat": lambda: group_api.heartbeat(client, group, stale),
        "leave": lambda: group_api.leave(client, group, "m").error_code,
        "commit": lambda: group_api.commit(client, group, "t", 1),
        "fetch": lambda: int(client.ask(every_offset, 7).error_code),
        "describe": lambda: group_api.described(client, group).error_code,
    }


@pytest.mark.parametrize("auto_commit", [False, True], ids=["manual", "auto"])
def test_stock_clients_go_on_when_their_coordinator_was_killed(
    cluster: Cluster, *, auto_commit: bool
) -> None:
    victim, topic = 1, "work"
    group = cluster.group_of(victim)
    # Records keep coming while the coordinator is away: they lie on the other brokers.
    places = {number: (0 if number % 2 else 2,) for number in range(PARTITIONS)}
    cluster.create_topic(topic, places)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    crew = Crew(
        Team((confluent, kafka_python, aiokafka), "range", auto_commit),
        cluster.bootstrap,
        topic,
        group,
    )
    try:
        with producing(cluster.bootstrap, topic) as produced:
            for _ in range(3):
                crew.come()
            crew.wait_for_progress()
            before = committed(admin, group)
            cluster.brokers[victim].kill()
            cluster.brokers[victim].start()
            crew.wait_until(lambda: committed_or_none(admin, group) > before)
            crew.wait_for_progress()
            crew.go(0)
            crew.wait_for_progress()
        total = sum(produced.values())
        crew.wait_until(lambda: crew.ledger.count >= total)
        crew.wait_until(lambda: committed_or_none(admin, group) >= total)
    finally:
        crew.dismiss()
    check(
        crew.ledger,
        produced,
        commits_of(cluster.bootstrap, group, topic),
        answers_may_be_lost=True,
    )


def committed_or_none(admin: AdminClient, group: str) -> int:
    """What is committed, or nothing while the coordinator cannot be asked."""
    try:
        return committed(admin, group, ANSWER_SECONDS)
    except (KafkaException, TimeoutError):
        return -1
