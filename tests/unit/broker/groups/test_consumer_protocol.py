"""Assignments that consumers hand each other through their group."""

import pytest

from broker.groups.consumer_protocol import AssignedTopic, ConsumerAssignment, decode_assignment
from broker.groups.record_formats import GroupKey, decode_group_value, decode_key
from broker.versioned_records import MalformedRecordError
from tests.unit.broker.coordinator_logs import RELEASES, coordinator_records

# one topic "t" with the partitions 0 and 3
TOPICS = b"\0\0\0\x01" + b"\0\x01t" + b"\0\0\0\x02" + b"\0\0\0\0" + b"\0\0\0\x03"
ASSIGNED = [AssignedTopic(topic="t", partitions=[0, 3])]


@pytest.mark.parametrize("version", [b"\0\0", b"\0\x01", b"\0\x07"])
def test_versions_up_to_those_unknown_are_read_alike(version: bytes) -> None:
    data = version + TOPICS + b"\0\0\0\x02UD"
    assert decode_assignment(data) == ConsumerAssignment(topics=ASSIGNED, user_data=b"UD")


def test_user_data_may_be_missing() -> None:
    data = b"\0\0" + TOPICS + b"\xff\xff\xff\xff"
    assert decode_assignment(data) == ConsumerAssignment(topics=ASSIGNED, user_data=None)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\xff\xff" + TOPICS, b"\0\0" + TOPICS])
def test_what_is_no_assignment_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRecordError):
        decode_assignment(data)


@pytest.mark.parametrize("release", RELEASES)
def test_assignments_in_groups_that_kafka_stored_are_read(release: str) -> None:
    assignments = [
        decode_assignment(member.assignment)
        for key, value in coordinator_records(release, "__consumer_offsets-0")
        if value is not None and isinstance(decode_key(key), GroupKey)
        for member in decode_group_value(value).members
    ]
    assert (
        ConsumerAssignment(topics=[AssignedTopic(topic="sent-gzip", partitions=[0])], user_data=b"")
        in assignments
    )
