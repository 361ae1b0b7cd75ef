"""The APIs of consumer groups on a real broker: one scenario, many versions."""

import threading
from collections.abc import Iterator

import pytest

from network.protocol import ErrorCode
from network.protocol.messages.delete_groups import DeleteGroupsRequest
from network.protocol.messages.describe_groups import DescribeGroupsRequest
from network.protocol.messages.find_coordinator import FindCoordinatorRequest
from network.protocol.messages.join_group import JoinGroupRequest
from network.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from network.protocol.messages.list_groups import ListGroupsRequest
from network.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from network.protocol.messages.offset_fetch import OffsetFetchRequest
from network.protocol.messages.sync_group import SyncGroupRequest
from tests.support.api import describe as describe_topic
from tests.support.api import new_topic
from tests.support.broker import BrokerProcess, running_broker
from tests.support.group_api import (
    become_only_member,
    commit,
    committed,
    described,
    find_coordinator,
    heartbeat,
    join,
    leave,
    new_group,
    sync,
)
from tests.support.raw_client import RawClient
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "5",
        "offset.metadata.max.bytes": "20",
    }
    with running_broker(tmp_path_factory.mktemp("data"), settings) as broker:
        yield broker


@pytest.mark.parametrize("version", range(4))
def test_find_coordinator_makes_the_topic_and_names_the_broker(
    broker: BrokerProcess, client: RawClient, version: int
) -> None:
    find_coordinator(client, "somebody")
    found = client.ask(FindCoordinatorRequest(key="somebody"), version)
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 0)
    assert (found.host, found.port) == ("127.0.0.1", broker.port)
    topic = describe_topic(client, "__consumer_offsets")
    assert (topic.is_internal, len(topic.partitions)) == (True, 5)


@pytest.mark.parametrize("version", range(1, 4))
def test_transactions_have_no_coordinator_yet(client: RawClient, version: int) -> None:
    response = client.ask(FindCoordinatorRequest(key="t", key_type=1), version)
    assert (response.error_code, response.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    response = client.ask(FindCoordinatorRequest(key="t", key_type=2), version)
    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(8))
def test_join_sync_heartbeat_leave(client: RawClient, version: int) -> None:
    group = new_group(client)
    joined = join(client, group, version)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.leader == joined.member_id
    assert [(one.member_id, one.metadata) for one in joined.members] == [
        (joined.member_id, b"subscription")
    ]
    assert joined.protocol_name == "range"
    if version >= 7:
        assert joined.protocol_type == "consumer"
    others = min(version, 4)
    assert heartbeat(client, group, joined, others) == ErrorCode.REBALANCE_IN_PROGRESS
    synced = sync(client, group, joined, {joined.member_id: b"mine"}, min(version, 5))
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"mine")
    assert heartbeat(client, group, joined, others) == ErrorCode.NONE
    left = leave(client, group, joined.member_id, others)
    assert left.error_code == ErrorCode.NONE
    again = leave(client, group, joined.member_id, others)
    if others >= 3:
        assert again.error_code == ErrorCode.NONE
        assert again.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    else:
        assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(client, group, joined, others) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(8))
def test_refused_join_says_so_in_every_version(client: RawClient, version: int) -> None:
    group = new_group(client)
    refused = join(client, group, version, member_id="stranger")
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert (refused.generation_id, refused.leader) == (-1, "")
    assert refused.protocol_name == (None if version >= 7 else "")
    request = JoinGroupRequest(group_id=group, session_timeout_ms=1, protocol_type="consumer")
    assert client.ask(request, version).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_member_ids_are_handed_out_from_version_4_on(client: RawClient) -> None:
    group = new_group(client)
    request = JoinGroupRequest(group_id=group, session_timeout_ms=6000, protocol_type="consumer")
    request.protocols = []
    assert client.ask(request, 4).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    joined = join(client, group, 4)
    assert joined.member_id.startswith("raw-")


def test_sync_of_version_5_must_name_the_protocol(client: RawClient) -> None:
    group = new_group(client)
    joined = join(client, group)
    request = SyncGroupRequest(group_id=group, generation_id=1, member_id=joined.member_id)
    assert client.ask(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_two_members_wait_for_each_other(broker: BrokerProcess, client: RawClient) -> None:
    group = new_group(client)
    first = become_only_member(client, group)
    with RawClient(broker.port, "other") as other:
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(join(other, group)))
        waiting.start()
        eventually(
            lambda: (
                heartbeat(client, group, first) == ErrorCode.REBALANCE_IN_PROGRESS
                and len(described(client, group).members) == 2
            )
        )
        rejoined = join(client, group, member_id=first.member_id)
        waiting.join(20)
        (second,) = answers
        assert (rejoined.generation_id, second.generation_id) == (2, 2)
        assert {one.member_id for one in rejoined.members} == {first.member_id, second.member_id}
        follower: list[bytes] = []
        waiting = threading.Thread(
            target=lambda: follower.append(sync(other, group, second).assignment)
        )
        waiting.start()
        parts = {first.member_id: b"1", second.member_id: b"2"}
        assert sync(client, group, rejoined, parts).assignment == b"1"
        waiting.join(20)
        assert follower == [b"2"]


def test_static_member_leaves_by_its_instance(client: RawClient) -> None:
    group = new_group(client)
    joined = join(client, group, instance="one")
    request = LeaveGroupRequest(
        group_id=group, members=[MemberIdentity(member_id="", group_instance_id="one")]
    )
    (left,) = client.ask(request, 4).members
    assert (left.error_code, left.group_instance_id) == (ErrorCode.NONE, "one")
    assert heartbeat(client, group, joined) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(9))
def test_committed_offsets_are_fetched(client: RawClient, version: int) -> None:
    group, topic = new_group(client), new_topic(client, 2)
    assert commit(client, group, topic, 42, version, leader_epoch=3) == ErrorCode.NONE
    fetched = committed(client, group, topic, min(version, 7))
    assert (fetched.error_code, fetched.committed_offset) == (ErrorCode.NONE, 42)
    assert fetched.metadata == ("" if version == 0 else "note")
    if version >= 6:
        assert fetched.committed_leader_epoch == 3
    nothing = committed(client, group, topic, min(version, 7), partition=1)
    assert (nothing.committed_offset, nothing.metadata) == (-1, "")
    assert nothing.error_code == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version == 0 else ErrorCode.NONE
    )
    assert commit(client, group, topic, 43, version) == ErrorCode.NONE
    assert committed(client, group, topic, min(version, 7)).committed_offset == 43


@pytest.mark.parametrize("version", range(9))
def test_commits_that_cannot_be(client: RawClient, version: int) -> None:
    group, topic = new_group(client), new_topic(client)
    too_long = commit(client, group, topic, 1, version, metadata="x" * 21)
    assert too_long == ErrorCode.OFFSET_METADATA_TOO_LARGE
    unknown = commit(client, group, "nowhere", 1, version)
    assert unknown == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version >= 1:
        stale = commit(client, new_group(client), topic, 1, version, generation=1, member_id="m")
        assert stale == ErrorCode.ILLEGAL_GENERATION
        stranger = commit(client, group, topic, 1, version, generation=1, member_id="m")
        assert stranger == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_version_0_are_kept_apart(client: RawClient) -> None:
    group, topic = new_group(client), new_topic(client)
    commit(client, group, topic, 10, 0)
    commit(client, group, topic, 20, 1, metadata=None)
    assert committed(client, group, topic, 0).committed_offset == 10
    assert committed(client, group, topic, 1).committed_offset == 20


@pytest.mark.parametrize("version", range(2, 8))
def test_all_offsets_of_a_group(client: RawClient, version: int) -> None:
    group, one, other = new_group(client), new_topic(client), new_topic(client)
    commit(client, group, one, 1)
    commit(client, group, other, 2)
    response = client.ask(OffsetFetchRequest(group_id=group, topics=None), version)
    found = {topic.name: topic.partitions[0].committed_offset for topic in response.topics}
    assert (response.error_code, found) == (ErrorCode.NONE, {one: 1, other: 2})


@pytest.mark.parametrize("version", range(6))
def test_describe_groups(client: RawClient, version: int) -> None:
    group = new_group(client)
    unknown = described(client, group, version)
    assert (unknown.error_code, unknown.group_state) == (ErrorCode.NONE, "Dead")
    joined = join(client, group, instance="i")
    assert described(client, group, version).group_state == "CompletingRebalance"
    assert described(client, group, version).members[0].member_metadata == b""
    sync(client, group, joined, {joined.member_id: b"all"})
    stable = described(client, group, version)
    assert (stable.group_state, stable.protocol_type) == ("Stable", "consumer")
    assert stable.protocol_data == "range"
    (member,) = stable.members
    assert (member.member_id, member.client_id) == (joined.member_id, "raw")
    assert member.client_host == "/127.0.0.1"
    assert (member.member_metadata, member.member_assignment) == (b"subscription", b"all")
    assert member.group_instance_id == ("i" if version >= 4 else None)
    leave(client, group, joined.member_id)
    assert described(client, group, version).group_state == "Empty"


def test_describe_groups_tells_operations_if_asked(client: RawClient) -> None:
    request = DescribeGroupsRequest(groups=["x"], include_authorized_operations=True)
    find_coordinator(client, "x")
    assert client.ask(request, 5).groups[0].authorized_operations == 0b1_0100_1000


@pytest.mark.parametrize("version", range(4))
def test_list_groups(client: RawClient, version: int) -> None:
    group, simple, topic = new_group(client), new_group(client), new_topic(client)
    become_only_member(client, group)
    commit(client, simple, topic, 1)
    response = client.ask(ListGroupsRequest(), version)
    listed = {one.group_id: one.protocol_type for one in response.groups}
    assert response.error_code == ErrorCode.NONE
    assert (listed[group], listed[simple]) == ("consumer", "")


@pytest.mark.parametrize("version", range(3))
def test_delete_groups(client: RawClient, version: int) -> None:
    group, gone, topic = new_group(client), new_group(client), new_topic(client)
    become_only_member(client, group)
    commit(client, gone, topic, 1)
    request = DeleteGroupsRequest(groups_names=[group, gone, "never-was"])
    response = client.ask(request, version)
    assert {one.group_id: one.error_code for one in response.results} == {
        group: ErrorCode.NON_EMPTY_GROUP,
        gone: ErrorCode.NONE,
        "never-was": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert committed(client, gone, topic).committed_offset == -1


def test_offset_delete(client: RawClient) -> None:
    group, topic = new_group(client), new_topic(client, 2)
    commit(client, group, topic, 1)
    commit(client, group, topic, 2, partition=1)
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
            for name in (topic, "nowhere")
        ],
    )
    response = client.ask(request, 0)
    assert response.error_code == ErrorCode.NONE
    codes = {one.name: one.partitions[0].error_code for one in response.topics}
    assert codes == {topic: ErrorCode.NONE, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert committed(client, group, topic).committed_offset == -1
    assert committed(client, group, topic, partition=1).committed_offset == 2
    request.group_id = "never-was"
    refused = client.ask(request, 0)
    assert (refused.error_code, refused.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
