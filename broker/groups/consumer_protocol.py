"""What consumers put into the opaque fields of their group: the embedded protocol "consumer".

Owns the layout of an assignment. Must not know group records or the running broker.
"""

from typing import Final

from broker.versioned_records import decode_versioned, version_of
from network.protocol.schema import Message, Struct, array, binary, int32, string

PROTOCOL_TYPE: Final = "consumer"
_NEWEST_KNOWN: Final = 1


class AssignedTopic(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerAssignment(Message, versions="0-1"):
    """The partitions of one consumer; user data is its assignor's own."""

    topics: list[AssignedTopic] = array(AssignedTopic)
    user_data: bytes | None = binary(null="0+", default=None)


def decode_assignment(data: bytes) -> ConsumerAssignment:
    """An assignment; one of a later version is read as the newest that is known."""
    return decode_versioned(ConsumerAssignment, data, min(version_of(data), _NEWEST_KNOWN))
