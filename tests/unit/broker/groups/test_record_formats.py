"""The records of `__consumer_offsets`: Kafka's bytes are read and written again, byte for byte."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.record_formats import (
    GroupKey,
    GroupMember,
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from broker.versioned_records import MalformedRecordError, UnknownRecordVersionError
from network.protocol.exceptions import EncodeError
from tests.unit.broker.coordinator_logs import RELEASES, coordinator_records
from tests.unit.broker.groups.strategies import group_keys, group_values, offset_keys, offset_values

VERSIONS = range(4)

OFFSET = OffsetValue(offset=5, metadata="note", commit_timestamp=7)
MEMBER = GroupMember(
    member_id="m",
    client_id="c",
    client_host="/h",
    rebalance_timeout=2,
    session_timeout=1,
    subscription=b"S",
    assignment=b"AA",
)


def string(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()


def test_an_offset_key_has_the_bytes_of_kafka() -> None:
    key = OffsetKey(group="g", topic="top", partition=6)
    fields = string("g") + string("top") + b"\0\0\0\x06"
    assert encode_offset_key(key) == b"\0\x01" + fields
    assert encode_offset_key(key, version=0) == b"\0\0" + fields


def test_a_group_key_has_the_bytes_of_kafka() -> None:
    assert encode_group_key(GroupKey(group="g")) == b"\0\x02" + string("g")


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (0, (5).to_bytes(8) + string("note") + (7).to_bytes(8)),
        (1, (5).to_bytes(8) + string("note") + (7).to_bytes(8) + b"\xff" * 8),
        (2, (5).to_bytes(8) + string("note") + (7).to_bytes(8)),
        (3, (5).to_bytes(8) + b"\xff" * 4 + string("note") + (7).to_bytes(8)),
    ],
)
def test_an_offset_has_the_bytes_of_kafka_in_each_version(version: int, fields: bytes) -> None:
    assert encode_offset_value(OFFSET, version) == version.to_bytes(2) + fields


def test_an_offset_is_written_in_the_newest_version() -> None:
    assert encode_offset_value(OFFSET)[:2] == b"\0\x03"


def test_an_offset_that_expires_is_written_in_the_version_that_can_say_so() -> None:
    expiring = OffsetValue(offset=5, commit_timestamp=7, expire_timestamp=9)
    encoded = encode_offset_value(expiring)
    assert encoded[:2] == b"\0\x01"
    assert decode_offset_value(encoded) == expiring


def test_an_expiry_is_not_lost_silently() -> None:
    with pytest.raises(EncodeError):
        encode_offset_value(OffsetValue(offset=5, expire_timestamp=9), version=3)


@pytest.mark.parametrize(
    ("version", "timestamp", "instance", "timeouts"),
    [
        (0, b"", b"", b"\0\0\0\x01"),
        (1, b"", b"", b"\0\0\0\x02\0\0\0\x01"),
        (2, (8).to_bytes(8), b"", b"\0\0\0\x02\0\0\0\x01"),
        (3, (8).to_bytes(8), b"\xff\xff", b"\0\0\0\x02\0\0\0\x01"),
    ],
)
def test_a_group_has_the_bytes_of_kafka_in_each_version(
    version: int, timestamp: bytes, instance: bytes, timeouts: bytes
) -> None:
    group = GroupValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader=None,
        current_state_timestamp=8,
        members=[MEMBER],
    )
    head = string("consumer") + b"\0\0\0\x04" + string("range") + b"\xff\xff" + timestamp
    member = string("m") + instance + string("c") + string("/h") + timeouts
    opaque = b"\0\0\0\x01S" + b"\0\0\0\x02AA"
    expected = version.to_bytes(2) + head + b"\0\0\0\x01" + member + opaque
    assert encode_group_value(group, version) == expected


def test_a_member_of_version_0_may_rebalance_as_long_as_its_session_lasts() -> None:
    encoded = encode_group_value(GroupValue(members=[MEMBER]), version=0)
    assert decode_group_value(encoded).members[0].rebalance_timeout == MEMBER.session_timeout


@given(offset_keys(), st.sampled_from((0, 1)))
def test_offset_keys_are_read_as_they_were_written(key: OffsetKey, version: int) -> None:
    assert decode_key(encode_offset_key(key, version)) == key


@given(group_keys())
def test_group_keys_are_read_as_they_were_written(key: GroupKey) -> None:
    assert decode_key(encode_group_key(key)) == key


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_offsets_are_read_as_they_were_written(version: int, data: st.DataObject) -> None:
    value = data.draw(offset_values(version))
    assert decode_offset_value(encode_offset_value(value, version)) == value


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_groups_are_read_as_they_were_written(version: int, data: st.DataObject) -> None:
    value = data.draw(group_values(version))
    assert decode_group_value(encode_group_value(value, version)) == value


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_groups_cut_anywhere_are_refused(version: int, data: st.DataObject) -> None:
    encoded = encode_group_value(data.draw(group_values(version)), version)
    with pytest.raises(MalformedRecordError):
        decode_group_value(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@pytest.mark.parametrize("decode", [decode_key, decode_offset_value, decode_group_value])
@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(decode: Callable[[bytes], object], data: bytes) -> None:
    try:
        decode(data)
    except MalformedRecordError:
        return


@pytest.mark.parametrize("version", [-1, 3, 17])
def test_a_key_of_an_unknown_version_is_told_apart(version: int) -> None:
    with pytest.raises(UnknownRecordVersionError, match=f"version {version}"):
        decode_key(version.to_bytes(2, signed=True) + string("g"))


@pytest.mark.parametrize("decode", [decode_offset_value, decode_group_value])
def test_a_value_of_an_unknown_version_is_told_apart(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(UnknownRecordVersionError, match="version 4"):
        decode(b"\0\x04")


@pytest.mark.parametrize("release", RELEASES)
def test_what_kafka_wrote_is_written_again_byte_for_byte(release: str) -> None:
    records = coordinator_records(release, "__consumer_offsets-0")
    kinds = set()
    for key_bytes, value_bytes in records:
        key = decode_key(key_bytes)
        if isinstance(key, OffsetKey):
            assert encode_offset_key(key) == key_bytes
            if value_bytes is not None:
                assert encode_offset_value(decode_offset_value(value_bytes)) == value_bytes
        else:
            assert encode_group_key(key) == key_bytes
            if value_bytes is not None:
                assert encode_group_value(decode_group_value(value_bytes)) == value_bytes
        kinds.add((isinstance(key, OffsetKey), value_bytes is None))
    assert kinds == {(is_offset, deleted) for is_offset in (0, 1) for deleted in (0, 1)}
