"""Requests of consumer groups in any version, for tests that ask a real broker."""

import itertools
from collections.abc import Mapping

from network.protocol import ErrorCode
from network.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from network.protocol.messages.find_coordinator import FindCoordinatorRequest
from network.protocol.messages.heartbeat import HeartbeatRequest
from network.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from network.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from network.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from network.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponsePartition,
)
from network.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.support.raw_client import RawClient
from tests.support.waiting import eventually

SESSION_MS = 10_000

_numbers = itertools.count()


def new_group(client: RawClient) -> str:
    """The id of a group that no test has used and whose coordinator is found."""
    group = f"group-{next(_numbers)}"
    find_coordinator(client, group)
    return group


def find_coordinator(client: RawClient, group: str) -> None:
    def found() -> bool:
        answer = client.ask(FindCoordinatorRequest(key=group), 3)
        return bool(answer.error_code == ErrorCode.NONE)

    eventually(found)


def wait_until_loaded(client: RawClient, group: str) -> None:
    """A coordinator that has just come to power reads its log first."""

    def loaded() -> bool:
        answer = client.ask(OffsetFetchRequest(group_id=group, topics=None), 7)
        return bool(answer.error_code == ErrorCode.NONE)

    eventually(loaded)


def join(
    client: RawClient,
    group: str,
    version: int = 7,
    *,
    member_id: str = "",
    instance: str | None = None,
    metadata: bytes = b"subscription",
    protocol_type: str = "consumer",
) -> JoinGroupResponse:
    """Ask, and ask again with the id where one was handed out."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    response: JoinGroupResponse = client.ask(request, version)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = response.member_id
        response = client.ask(request, version)
    return response


def sync(
    client: RawClient,
    group: str,
    joined: JoinGroupResponse,
    assignment: Mapping[str, bytes] | None = None,
    version: int = 5,
) -> SyncGroupResponse:
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=data)
            for member_id, data in (assignment or {}).items()
        ],
    )
    if version >= 5:
        request.protocol_type, request.protocol_name = "consumer", "range"
    response: SyncGroupResponse = client.ask(request, version)
    return response


def heartbeat(client: RawClient, group: str, joined: JoinGroupResponse, version: int = 4) -> int:
    request = HeartbeatRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
    )
    code: int = client.ask(request, version).error_code
    return code


def leave(
    client: RawClient, group: str, member_id: str, version: int = 4, instance: str | None = None
) -> LeaveGroupResponse:
    if version < 3:
        request = LeaveGroupRequest(group_id=group, member_id=member_id)
    else:
        member = MemberIdentity(member_id=member_id, group_instance_id=instance)
        request = LeaveGroupRequest(group_id=group, members=[member])
    response: LeaveGroupResponse = client.ask(request, version)
    return response


def commit(
    client: RawClient,
    group: str,
    topic: str,
    offset: int,
    version: int = 8,
    *,
    partition: int = 0,
    metadata: str | None = "note",
    member_id: str = "",
    generation: int = -1,
    retention_ms: int = -1,
    leader_epoch: int = -1,
) -> int:
    """Commit one offset; the error code."""
    one = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    if version >= 6:
        one.committed_leader_epoch = leader_epoch
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[one])],
    )
    code: int = client.ask(request, version).topics[0].partitions[0].error_code
    return code


def committed(
    client: RawClient, group: str, topic: str, version: int = 7, *, partition: int = 0
) -> OffsetFetchResponsePartition:
    wanted = OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])
    response = client.ask(OffsetFetchRequest(group_id=group, topics=[wanted]), version)
    result: OffsetFetchResponsePartition = response.topics[0].partitions[0]
    return result


def described(client: RawClient, group: str, version: int = 5) -> DescribedGroup:
    result: DescribedGroup = client.ask(DescribeGroupsRequest(groups=[group]), version).groups[0]
    return result


def become_only_member(client: RawClient, group: str, **options: object) -> JoinGroupResponse:
    """Join and sync: the member of a stable group."""
    joined = join(client, group, **options)  # type: ignore[arg-type]
    assert joined.error_code == ErrorCode.NONE
    assert sync(client, group, joined, {joined.member_id: b"all"}).error_code == ErrorCode.NONE
    return joined
