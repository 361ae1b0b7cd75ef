"""Groups from logs: Kafka's own, and what records add up to."""

import asyncio
import shutil
from pathlib import Path

import pytest

from broker.groups.group import Group
from broker.groups.loading import GroupLoader
from broker.groups.record_formats import (
    GroupKey,
    GroupMember,
    GroupValue,
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from broker.groups.states import EMPTY, STABLE
from network.protocol import ErrorCode
from storage.records import BatchBuilder, ProducerInfo, build_end_txn_batch, iter_batches
from storage.records.control import ControlType, EndTxnMarker
from tests.support.groups import TestCoordinator
from tests.unit.broker.coordinator_logs import RELEASES, coordinator_records

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
NOW = 1_700_000_000_000
TP = ("t", 0)


def offset_record(offset: int | None, *, group: str = "g") -> tuple[bytes, bytes | None]:
    key = encode_offset_key(OffsetKey(group=group, topic="t", partition=0))
    if offset is None:
        return key, None
    return key, encode_offset_value(OffsetValue(offset=offset, metadata="", commit_timestamp=NOW))


def group_record(value: GroupValue | None, version: int = 3) -> tuple[bytes, bytes | None]:
    key = encode_group_key(GroupKey(group="g"))
    return key, None if value is None else encode_group_value(value, version)


def batch(
    base_offset: int, *records: tuple[bytes, bytes | None], producer_id: int | None = None
) -> bytes:
    producer = ProducerInfo() if producer_id is None else ProducerInfo(producer_id, 0, 0, True)
    builder = BatchBuilder(base_offset=base_offset, producer=producer)
    for key, value in records:
        builder.append(NOW, key, value)
    return bytes(builder.build())


def marker(producer_id: int, kind: ControlType) -> bytes:
    return bytes(build_end_txn_batch(NOW, producer_id, 0, EndTxnMarker(kind, 0)))


def load(*batches: bytes) -> dict[str, Group]:
    loader = GroupLoader()
    for one in iter_batches(b"".join(batches)):
        loader.take(one)
    return {group.group_id: group for group in loader.groups(NOW)}


def committed(groups: dict[str, Group], group: str = "g") -> int | None:
    found = groups[group].offsets.committed.get(TP)
    return None if found is None else found.offset


def members(count: int) -> list[GroupMember]:
    return [
        GroupMember(
            member_id=f"m{number}",
            group_instance_id=f"i{number}" if number else None,
            client_id="c",
            client_host="/h",
            rebalance_timeout=60_000,
            session_timeout=10_000,
            subscription=b"s",
            assignment=b"a%d" % number,
        )
        for number in range(count)
    ]


def test_last_word_on_an_offset_holds() -> None:
    assert committed(load(batch(0, offset_record(1)), batch(1, offset_record(5)))) == 5
    assert load(batch(0, offset_record(1)), batch(1, offset_record(None))) == {}


def test_group_is_as_its_last_record_says() -> None:
    value = GroupValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="m1",
        current_state_timestamp=NOW,
        members=members(2),
    )
    group = load(batch(0, group_record(value), offset_record(3)))["g"]
    assert (group.state, group.generation, group.protocol) == (STABLE, 7, "range")
    assert (group.leader_id, group.static_members) == ("m1", {"i1": "m1"})
    assert group.members["m1"].assignment == b"a1"
    assert load(batch(0, group_record(value)), batch(1, group_record(None))) == {}


def test_group_without_members_is_empty_since_the_time_in_its_record() -> None:
    value = GroupValue(protocol_type="consumer", generation=2, current_state_timestamp=5)
    group = load(batch(0, group_record(value)))["g"]
    assert (group.state, group.state_timestamp, group.protocol_type) == (EMPTY, 5, "consumer")
    old = load(batch(0, group_record(value, version=1)))["g"]
    assert old.state_timestamp is None


def test_commits_in_a_transaction_count_from_its_marker() -> None:
    begun = (batch(0, offset_record(1)), batch(1, offset_record(9), producer_id=4))
    still_open = load(*begun)
    assert committed(still_open) == 1
    assert still_open["g"].offsets.is_unstable(TP)
    assert committed(load(*begun, marker(4, ControlType.COMMIT))) == 9
    aborted = load(*begun, marker(4, ControlType.ABORT))
    assert committed(aborted) == 1
    assert not aborted["g"].offsets.is_unstable(TP)
    assert committed(load(*begun, marker(5, ControlType.COMMIT))) == 1


def test_later_commit_wins_over_a_transaction_that_ends_after_it() -> None:
    groups = load(
        batch(0, offset_record(9), producer_id=4),
        batch(1, offset_record(2)),
        marker(4, ControlType.COMMIT),
    )
    assert committed(groups) == 2


def test_record_that_is_not_understood_is_skipped() -> None:
    future = (b"\x00\x63what", b"")
    broken = (encode_group_key(GroupKey(group="h")), b"\x00")
    assert committed(load(batch(0, future, broken, offset_record(4)))) == 4


@pytest.mark.parametrize("release", RELEASES)
def test_log_that_kafka_wrote_adds_up(release: str) -> None:
    """The last values by key, which this test finds on its own, are what is served."""
    last: dict[bytes, bytes | None] = dict(coordinator_records(release, "__consumer_offsets-0"))
    assert last
    directory = FIXTURES / f"kafka-{release}" / "data" / "__consumer_offsets-0"
    groups = load(*(path.read_bytes() for path in sorted(directory.glob("*.log"))))
    assert groups
    found = sum(len(group.offsets) for group in groups.values())
    assert found > 0
    keys = {
        encode_offset_key(OffsetKey(group=group.group_id, topic=topic, partition=partition))
        for group in groups.values()
        for topic, partition in group.offsets.committed
    }
    assert keys <= {key for key, value in last.items() if value is not None}


def test_partition_is_loaded_when_it_is_led_and_given_up_when_not(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path)
    assert groups.join()[0].error == ErrorCode.NOT_COORDINATOR
    groups.lead()
    member = groups.new_member()
    groups.stabilize()
    groups.commit({TP: 1}, member_id=member, generation=1)
    waiting = groups.join()
    groups.lead(leader=1)
    groups.settle()
    assert waiting[0].error == ErrorCode.NOT_COORDINATOR
    assert groups.heartbeat(member, 1) == ErrorCode.NOT_COORDINATOR
    assert groups.coordinator.describe("g") == (ErrorCode.NOT_COORDINATOR, None)

    async def return_to_power() -> None:
        groups.lead()
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert groups.join()[0].error == loading
        assert groups.coordinator.fetch("g", None, require_stable=False) == (loading, {})
        assert groups.commit({TP: 2}) == [{TP: loading}]
        assert groups.coordinator.groups() == (loading, [])
        # Old clients do not expect to hear of it here.
        assert groups.heartbeat(member, 1) == ErrorCode.NONE
        assert groups.sync(member, 1)[0].error == ErrorCode.REBALANCE_IN_PROGRESS
        while groups.coordinator.registry.is_loading:
            await asyncio.sleep(0.001)

    asyncio.run(return_to_power())
    assert groups.heartbeat(member, 1) == ErrorCode.NONE
    assert groups.committed(TP) == 1
    groups.advance(11)
    assert groups.group().members == {}  # sessions go on where they were loaded


def test_loading_that_is_overtaken_by_a_new_leader_leaves_nothing(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path)
    groups.lead()
    groups.commit({TP: 1})
    groups.lead(leader=1)

    async def lead_and_lose() -> None:
        groups.lead()
        await asyncio.sleep(0)
        groups.lead(leader=1)
        await asyncio.sleep(0.05)

    asyncio.run(lead_and_lose())
    assert groups.coordinator.registry.groups == {}
    assert groups.join()[0].error == ErrorCode.NOT_COORDINATOR


def test_deleted_replica_is_given_up(tmp_path: Path) -> None:
    groups = TestCoordinator(tmp_path)
    groups.lead()
    groups.commit({TP: 1})
    groups.replicas.stop("__consumer_offsets", 0, delete=True)
    assert groups.commit({TP: 1}) == [{TP: ErrorCode.NOT_COORDINATOR}]


def test_kafkas_directory_is_served_as_it_is(tmp_path: Path) -> None:
    source = FIXTURES / "kafka-2.5.1" / "data" / "__consumer_offsets-0"
    shutil.copytree(source, tmp_path / "__consumer_offsets-0")
    groups = TestCoordinator(tmp_path)
    asyncio.run(groups.lead_and_load())
    assert groups.coordinator.groups()[0] == ErrorCode.NONE
    assert any(len(group.offsets) for group in groups.coordinator.registry)
