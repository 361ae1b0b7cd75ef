"""Control records: the markers that end a transaction in a partition's log.

Owns the layout of their key and value. Must not know batches; `BatchBuilder` puts them into one.

    key:    version 2 (0) | type 2 (0 abort, 1 commit)
    value:  version 2 (0) | coordinator epoch 4
"""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from storage.records.errors import InvalidRecordError

CONTROL_KEY: Final = Struct(">hh")
END_TXN_VALUE: Final = Struct(">hi")
CURRENT_VERSION: Final = 0


class ControlType(IntEnum):
    """What a control record says; numbers of later versions are read as UNKNOWN."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1


class EndTxnMarker(NamedTuple):
    """The end of a producer's transaction in a partition, as its coordinator decided it."""

    control_type: ControlType
    coordinator_epoch: int


def encode_end_txn_marker(marker: EndTxnMarker) -> tuple[bytes, bytes]:
    """Key and value of the control record for a marker."""
    if marker.control_type is ControlType.UNKNOWN:
        raise ValueError("A transaction ends by ABORT or COMMIT")
    return (
        CONTROL_KEY.pack(CURRENT_VERSION, marker.control_type),
        END_TXN_VALUE.pack(CURRENT_VERSION, marker.coordinator_epoch),
    )


def parse_control_type(key: bytes | None) -> ControlType:
    """What kind of control record has this key; fields that later versions add are ignored."""
    if key is None or len(key) < CONTROL_KEY.size:
        raise InvalidRecordError(f"A control record's key needs {CONTROL_KEY.size} bytes: {key!r}")
    version, number = CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecordError(f"A control record's key has the version {version}")
    if number in (ControlType.ABORT, ControlType.COMMIT):
        return ControlType(number)
    return ControlType.UNKNOWN


def parse_end_txn_marker(key: bytes | None, value: bytes | None) -> EndTxnMarker:
    """The marker in a control record of type ABORT or COMMIT."""
    control_type = parse_control_type(key)
    if control_type is ControlType.UNKNOWN:
        raise InvalidRecordError(f"Control record {key!r} does not end a transaction")
    if value is None or len(value) < END_TXN_VALUE.size:
        raise InvalidRecordError(
            f"A transaction marker's value needs {END_TXN_VALUE.size} bytes: {value!r}"
        )
    version, coordinator_epoch = END_TXN_VALUE.unpack_from(value)
    if version < 0:
        raise InvalidRecordError(f"A transaction marker has the version {version}")
    return EndTxnMarker(control_type, coordinator_epoch)
