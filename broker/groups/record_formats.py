"""The records of `__consumer_offsets`, in the bytes of Apache Kafka 2.5.

Owns the layouts of keys and values in every version. A key's version tells what the record is
about: 0 and 1 a committed offset, 2 a group; a value's version evolves on its own. A record
without a value deletes what its key names. Must not know the running broker or how groups live.
"""

from typing import Final

from broker.versioned_records import (
    UnknownRecordVersionError,
    decode_versioned,
    encode_versioned,
    version_of,
)
from network.protocol.schema import Message, Struct, array, binary, int32, int64, string

NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_TIMEOUT: Final = -1

# What Kafka 2.5 writes; an older inter.broker.protocol.version asks for older ones.
OFFSET_KEY_VERSION: Final = 1
GROUP_KEY_VERSION: Final = 2
OFFSET_VALUE_VERSION: Final = 3
GROUP_VALUE_VERSION: Final = 3
# The only version that tells when an offset expires.
EXPIRING_OFFSET_VALUE_VERSION: Final = 1


class OffsetKey(Message, versions="0-1"):
    """Whose offset in which partition."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class GroupKey(Message, versions="2"):
    """Which group."""

    group: str = string()


class OffsetValue(Message, versions="0-3"):
    """A committed offset."""

    offset: int = int64()
    leader_epoch: int = int32("3", default=NO_LEADER_EPOCH, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=NO_TIMESTAMP)


class GroupMember(Struct):
    """A member with what it subscribed to and what it was assigned, opaque to the broker."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", null="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=NO_TIMEOUT, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


class GroupValue(Message, versions="0-3"):
    """A generation of a group; without members there is neither protocol nor leader."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(null="0+", default=None)
    leader: str | None = string(null="0+", default=None)
    current_state_timestamp: int = int64("2+", default=NO_TIMESTAMP, ignorable=True)
    members: list[GroupMember] = array(GroupMember)


def encode_offset_key(key: OffsetKey, version: int = OFFSET_KEY_VERSION) -> bytes:
    return encode_versioned(key, version)


def encode_group_key(key: GroupKey) -> bytes:
    return encode_versioned(key, GROUP_KEY_VERSION)


def decode_key(data: bytes) -> OffsetKey | GroupKey:
    """The key of any record of the topic."""
    version = version_of(data)
    if version in OffsetKey.VERSIONS:
        return decode_versioned(OffsetKey, data, version)
    if version in GroupKey.VERSIONS:
        return decode_versioned(GroupKey, data, version)
    raise UnknownRecordVersionError(f"No record of a group has a key of version {version}")


def encode_offset_value(value: OffsetValue, version: int | None = None) -> bytes:
    """A committed offset; by default in the newest version that can say all of it."""
    if version is None:
        expires = value.expire_timestamp != NO_TIMESTAMP
        version = EXPIRING_OFFSET_VALUE_VERSION if expires else OFFSET_VALUE_VERSION
    return encode_versioned(value, version)


def decode_offset_value(data: bytes) -> OffsetValue:
    return decode_versioned(OffsetValue, data)


def encode_group_value(value: GroupValue, version: int = GROUP_VALUE_VERSION) -> bytes:
    return encode_versioned(value, version)


def decode_group_value(data: bytes) -> GroupValue:
    """A group; members of version 0 may take as long to rebalance as their session lasts."""
    version = version_of(data)
    value = decode_versioned(GroupValue, data, version)
    if version == 0:
        for member in value.members:
            member.rebalance_timeout = member.session_timeout
    return value
