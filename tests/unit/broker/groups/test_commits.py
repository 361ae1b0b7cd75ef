"""Commits: who may, when they count, when they expire, and what a broken disk does to them."""

import errno
from pathlib import Path

import pytest

from broker.groups.offsets import CommittedOffset
from broker.groups.record_formats import decode_key, decode_offset_value
from network.protocol import ErrorCode
from storage.faulty_files import Fault, FaultyFiles
from storage.log_config import LogConfig
from storage.records import iter_batches, iter_records
from tests.support.groups import FIRST_MS, TestCoordinator, make_settings

TP = ("t", 0)
OTHER = ("u", 3)
RETENTION_S = 60.0


@pytest.fixture
def groups(tmp_path: Path) -> TestCoordinator:
    coordinator = TestCoordinator(tmp_path)
    coordinator.lead()
    return coordinator


def records(directory: Path) -> list[tuple[object, bytes | None]]:
    return [
        (decode_key(record.key or b""), record.value)
        for path in sorted((directory / "__consumer_offsets-0").glob("*.log"))
        for batch in iter_batches(path.read_bytes())
        for record in iter_records(batch)
    ]


def test_simple_consumer_commits_without_a_group(groups: TestCoordinator) -> None:
    assert groups.committed(TP) is None
    assert groups.commit({TP: 5, OTHER: 7}) == [{TP: ErrorCode.NONE, OTHER: ErrorCode.NONE}]
    assert (groups.committed(TP), groups.committed(OTHER)) == (5, 7)
    assert groups.commit({TP: 3}) == [{TP: ErrorCode.NONE}]
    assert groups.committed(TP) == 3


def test_commit_is_stored_as_kafka_stores_it(groups: TestCoordinator, tmp_path: Path) -> None:
    groups.commit({TP: CommittedOffset(5, "note", 2, FIRST_MS)})
    ((key, data),) = records(tmp_path)
    assert (key.group, key.topic, key.partition) == ("g", "t", 0)  # type: ignore[attr-defined]
    assert data is not None
    value = decode_offset_value(data)
    assert (value.offset, value.metadata, value.leader_epoch) == (5, "note", 2)
    assert data[:2] == b"\x00\x03"


def test_commits_survive_a_restart(groups: TestCoordinator) -> None:
    member = groups.new_member()
    groups.stabilize()
    groups.commit({TP: 5}, member_id=member, generation=1)
    groups.commit({TP: 6, OTHER: 1}, member_id=member, generation=1)
    groups.commit({TP: 9}, group="simple")
    groups.restart()
    assert (groups.committed(TP), groups.committed(OTHER)) == (6, 1)
    assert groups.committed(TP, "simple") == 9
    assert groups.heartbeat(member, 1) == ErrorCode.NONE


def test_who_may_commit(groups: TestCoordinator) -> None:
    assert groups.commit({TP: 1}, generation=3) == [{TP: ErrorCode.ILLEGAL_GENERATION}]
    member = groups.new_member()

    def commit(**who: object) -> ErrorCode:
        return groups.commit({TP: 1}, **who)[0][TP]  # type: ignore[arg-type]

    assert commit(member_id=member, generation=1) == ErrorCode.REBALANCE_IN_PROGRESS
    groups.stabilize()
    assert commit(member_id=member, generation=1) == ErrorCode.NONE
    assert commit(member_id=member, generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert commit(member_id="stranger", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit() == ErrorCode.UNKNOWN_MEMBER_ID  # without membership, in a group with members
    groups.join()
    assert commit(member_id=member, generation=1) == ErrorCode.NONE  # before it rejoins


def test_commit_keeps_a_member_alive(groups: TestCoordinator) -> None:
    member = groups.new_member()
    groups.stabilize()
    for _ in range(3):
        groups.advance(8)
        assert groups.commit({TP: 1}, member_id=member, generation=1)[0][TP] == ErrorCode.NONE


def test_metadata_may_not_be_too_large(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path, make_settings(max_metadata_length=10))
    groups.lead()
    large, small = CommittedOffset(1, "x" * 11), CommittedOffset(2, "x" * 10)
    assert groups.commit({TP: large, OTHER: small}) == [
        {TP: ErrorCode.OFFSET_METADATA_TOO_LARGE, OTHER: ErrorCode.NONE}
    ]
    assert groups.commit({TP: large}) == [{TP: ErrorCode.OFFSET_METADATA_TOO_LARGE}]
    assert groups.commit({TP: CommittedOffset(1, "𝄞" * 6)})[0][TP] != ErrorCode.NONE  # 12 units
    assert (groups.committed(TP), groups.committed(OTHER)) == (None, 2)


def test_batch_that_is_too_large_is_an_invalid_commit(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path, config=LogConfig(max_message_bytes=300))
    groups.lead()
    assert groups.commit({TP: CommittedOffset(1, "x" * 300)}) == [
        {TP: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    ]
    assert groups.committed(TP) is None


def test_too_few_replicas_in_sync_make_the_coordinator_unavailable(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path, config=LogConfig(min_insync_replicas=2))
    groups.lead()
    assert groups.commit({TP: 1}) == [{TP: ErrorCode.COORDINATOR_NOT_AVAILABLE}]


def test_commit_counts_when_the_replicas_have_it(groups: TestCoordinator) -> None:
    groups.lead(isr=(0, 1))
    answer = groups.commit({TP: 1})
    assert (answer, groups.committed(TP)) == ([], None)
    unstable = groups.coordinator.fetch("g", [TP, OTHER], require_stable=True)[1]
    assert unstable == {TP: ErrorCode.UNSTABLE_OFFSET_COMMIT, OTHER: None}
    groups.replicate()
    assert (answer, groups.committed(TP)) == ([{TP: ErrorCode.NONE}], 1)


def test_commit_that_the_replicas_do_not_confirm_times_out(groups: TestCoordinator) -> None:
    groups.lead(isr=(0, 1))
    answer = groups.commit({TP: 1})
    groups.advance(5.1)
    assert (answer, groups.committed(TP)) == ([{TP: ErrorCode.REQUEST_TIMED_OUT}], None)


@pytest.mark.parametrize("fault", ["full disk", "failing directory"])
def test_commit_that_cannot_be_written_is_not_acknowledged(tmp_path: Path, fault: str) -> None:
    files = FaultyFiles()
    groups = TestCoordinator(tmp_path, files=files)
    groups.lead()
    assert groups.commit({TP: 1}) == [{TP: ErrorCode.NONE}]
    if fault == "full disk":
        files.space_left = 20
    else:
        files.faults.append(Fault("pwrite", errno.EIO, "__consumer_offsets"))
    assert groups.commit({TP: 2}) == [{TP: ErrorCode.NOT_COORDINATOR}]
    assert groups.committed(TP) == 1
    (found,) = groups.coordinator.fetch("g", [TP], require_stable=True)[1].values()
    assert isinstance(found, CommittedOffset)  # nothing is under way any more


def test_everything_a_group_has_committed(groups: TestCoordinator) -> None:
    groups.commit({TP: 1, OTHER: 2})
    error, found = groups.coordinator.fetch("g", None, require_stable=False)
    assert (error, set(found)) == (ErrorCode.NONE, {TP, OTHER})
    assert groups.coordinator.fetch("unknown", None, require_stable=False) == (ErrorCode.NONE, {})


def test_empty_group_id_may_commit_but_not_join(groups: TestCoordinator) -> None:
    assert groups.commit({TP: 4}, group="")[0][TP] == ErrorCode.NONE
    assert groups.committed(TP, "") == 4
    assert groups.coordinator.delete_group("") == ErrorCode.NONE


# Expiry


def expire(groups: TestCoordinator) -> None:
    groups.coordinator.remove_expired_offsets()


def test_offsets_of_simple_consumers_expire_each_by_itself(
    groups: TestCoordinator, tmp_path: Path
) -> None:
    groups.commit({TP: 1})
    groups.advance(RETENTION_S / 2)
    groups.commit({OTHER: 2})
    groups.advance(RETENTION_S / 2)
    expire(groups)
    assert (groups.committed(TP), groups.committed(OTHER)) == (None, 2)
    groups.advance(RETENTION_S / 2)
    expire(groups)
    assert "g" not in groups.coordinator.registry.groups
    assert [value is None for _, value in records(tmp_path)] == [False, False, True, True]


def test_offsets_of_a_group_expire_from_the_moment_it_is_empty(
    groups: TestCoordinator, tmp_path: Path
) -> None:
    member = groups.new_member(session_ms=600_000)
    groups.stabilize()
    groups.commit({TP: 1}, member_id=member, generation=1)
    groups.advance(RETENTION_S * 2)
    groups.leave((member, None))
    groups.advance(RETENTION_S - 1)
    expire(groups)
    assert groups.committed(TP) == 1
    groups.restart()  # the moment is written down
    groups.advance(2)
    expire(groups)
    assert "g" not in groups.coordinator.registry.groups
    assert [value for _, value in records(tmp_path)][-2:] == [None, None]  # offset and group


def test_offset_that_is_being_committed_anew_does_not_expire(groups: TestCoordinator) -> None:
    groups.commit({TP: 1})
    groups.advance(RETENTION_S + 1)
    groups.lead(isr=(0, 1))
    answer = groups.commit({TP: 2})
    expire(groups)
    assert (answer, groups.committed(TP)) == ([], 1)
    groups.replicate()
    assert (answer, groups.committed(TP)) == ([{TP: ErrorCode.NONE}], 2)


def test_member_keeps_the_offsets_of_what_it_subscribes_to(groups: TestCoordinator) -> None:
    subscription = b"\x00\x01" + b"\x00\x00\x00\x01\x00\x01t" + b"\xff\xff\xff\xff" + b"later"
    member = groups.new_member(protocols={"range": subscription}, session_ms=600_000)
    groups.stabilize()
    groups.commit({TP: 1, OTHER: 2}, member_id=member, generation=1)
    groups.advance(RETENTION_S + 1)
    expire(groups)
    assert (groups.committed(TP), groups.committed(OTHER)) == (1, None)


def test_group_whose_subscription_is_unknown_keeps_everything(groups: TestCoordinator) -> None:
    member = groups.new_member(protocols={"range": b"?"}, session_ms=600_000)
    groups.stabilize()
    groups.commit({TP: 1}, member_id=member, generation=1)
    groups.advance(RETENTION_S + 1)
    expire(groups)
    assert groups.committed(TP) == 1


def test_commit_may_name_its_own_end(groups: TestCoordinator, tmp_path: Path) -> None:
    end = groups.now_ms() + 5000
    groups.commit({TP: CommittedOffset(1, commit_timestamp=groups.now_ms(), expire_timestamp=end)})
    ((_, data),) = records(tmp_path)
    assert data is not None
    assert data[:2] == b"\x00\x01"
    groups.advance(4)
    expire(groups)
    assert groups.committed(TP) == 1
    groups.advance(2)
    expire(groups)
    assert groups.committed(TP) is None


def test_group_with_a_member_on_its_way_does_not_go(groups: TestCoordinator) -> None:
    (pending,) = groups.join(needs_known_id=True)
    expire(groups)
    answer = groups.join(pending.member_id)
    groups.settle()
    assert answer[0].error == ErrorCode.NONE


# Deletion


def test_group_without_members_can_be_deleted(groups: TestCoordinator, tmp_path: Path) -> None:
    def delete(group_id: str) -> ErrorCode:
        return groups.coordinator.delete_group(group_id)

    assert delete("g") == ErrorCode.GROUP_ID_NOT_FOUND
    member = groups.new_member()
    groups.stabilize()
    groups.commit({TP: 1}, member_id=member, generation=1)
    assert delete("g") == ErrorCode.NON_EMPTY_GROUP
    groups.leave((member, None))
    assert delete("g") == ErrorCode.NONE
    assert groups.committed(TP) is None
    groups.restart()
    assert groups.coordinator.registry.groups == {}
    assert delete("g") == ErrorCode.GROUP_ID_NOT_FOUND


def test_group_whose_deletion_cannot_be_written_stays(tmp_path: Path) -> None:
    files = FaultyFiles()
    groups = TestCoordinator(tmp_path, files=files)
    groups.lead()
    groups.commit({TP: 1})
    files.space_left = 0
    assert groups.coordinator.delete_group("g") == ErrorCode.NOT_COORDINATOR
    assert groups.committed(TP) == 1


def test_offsets_can_be_deleted_unless_a_member_reads_the_topic(groups: TestCoordinator) -> None:
    delete = groups.coordinator.delete_offsets
    assert delete("g", [TP])[0] == ErrorCode.GROUP_ID_NOT_FOUND
    subscription = b"\x00\x00" + b"\x00\x00\x00\x01\x00\x01t" + b"\xff\xff\xff\xff"
    member = groups.new_member(protocols={"range": subscription})
    groups.stabilize()
    groups.commit({TP: 1, OTHER: 2}, member_id=member, generation=1)
    assert delete("g", [TP, OTHER]) == (
        ErrorCode.NONE,
        {TP: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, OTHER: ErrorCode.NONE},
    )
    assert (groups.committed(TP), groups.committed(OTHER)) == (1, None)
    groups.restart()
    assert groups.committed(OTHER) is None


def test_offsets_of_a_group_that_is_none_of_consumers_stay(groups: TestCoordinator) -> None:
    groups.new_member(protocol_type="connect")
    assert groups.coordinator.delete_offsets("g", [TP])[0] == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_deleted_partitions_go(groups: TestCoordinator) -> None:
    groups.commit({TP: 1, OTHER: 2})
    groups.coordinator.forget_partitions([TP])
    assert (groups.committed(TP), groups.committed(OTHER)) == (None, 2)
    groups.restart()
    assert (groups.committed(TP), groups.committed(OTHER)) == (None, 2)


def test_commit_on_its_way_for_a_deleted_partition_is_forgotten(groups: TestCoordinator) -> None:
    groups.lead(isr=(0, 1))
    groups.commit({TP: 1})
    groups.coordinator.forget_partitions([TP])
    groups.replicate()
    assert groups.coordinator.fetch("g", [TP], require_stable=True)[1] == {TP: None}
