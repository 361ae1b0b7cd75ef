"""What consumers put into the opaque fields of their group: the embedded protocol "consumer".

Owns the layouts of subscriptions and assignments. Must not know group records or the running
broker.
"""

import struct
from typing import Final

from broker.versioned_records import MalformedRecordError, decode_versioned, version_of
from network.protocol.schema import Message, Struct, array, binary, int32, string

PROTOCOL_TYPE: Final = "consumer"
_NEWEST_KNOWN: Final = 1

_SUBSCRIPTION: Final = struct.Struct(">hi")
_LENGTH: Final = struct.Struct(">h")


class AssignedTopic(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerAssignment(Message, versions="0-1"):
    """The partitions of one consumer; user data is its assignor's own."""

    topics: list[AssignedTopic] = array(AssignedTopic)
    user_data: bytes | None = binary(null="0+", default=None)


def decode_subscribed_topics(data: bytes) -> list[str]:
    """What a consumer subscribed to; every version begins alike and may go on as it likes.

    version 2 | number of topics 4 | topics, each: length 2, UTF-8 | ...
    """
    topics = []
    try:
        _, count = _SUBSCRIPTION.unpack_from(data)
        position = _SUBSCRIPTION.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(data, position)
            position += _LENGTH.size + length
            topics.append(data[position - length : position].decode())
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedRecordError(f"No subscription of a consumer: {error}") from None
    if position > len(data):
        raise MalformedRecordError("A subscription of a consumer ends within a topic")
    return topics


def decode_assignment(data: bytes) -> ConsumerAssignment:
    """An assignment; one of a later version is read as the newest that is known."""
    return decode_versioned(ConsumerAssignment, data, min(version_of(data), _NEWEST_KNOWN))
