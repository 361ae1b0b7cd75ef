"""Keys and values of control records."""

import pytest

from storage.records.control import (
    ControlType,
    EndTxnMarker,
    encode_end_txn_marker,
    parse_control_type,
    parse_end_txn_marker,
)
from storage.records.errors import InvalidRecordError


@pytest.mark.parametrize("control_type", [ControlType.ABORT, ControlType.COMMIT])
def test_markers_are_read_as_they_were_written(control_type: ControlType) -> None:
    marker = EndTxnMarker(control_type, 2**31 - 1)
    key, value = encode_end_txn_marker(marker)
    assert parse_control_type(key) is control_type
    assert parse_end_txn_marker(key, value) == marker


def test_markers_have_kafkas_bytes() -> None:
    key, value = encode_end_txn_marker(EndTxnMarker(ControlType.COMMIT, 13))
    assert key == b"\x00\x00\x00\x01"
    assert value == b"\x00\x00\x00\x00\x00\x0d"


def test_types_of_later_versions_are_unknown_not_wrong() -> None:
    assert parse_control_type(b"\x00\x00\x00\x02") is ControlType.UNKNOWN
    assert parse_control_type(b"\x00\x01\x00\x01and more") is ControlType.COMMIT


def test_an_unknown_type_ends_no_transaction() -> None:
    with pytest.raises(InvalidRecordError, match="does not end"):
        parse_end_txn_marker(b"\x00\x00\x00\x02", bytes(6))
    with pytest.raises(ValueError, match="ABORT or COMMIT"):
        encode_end_txn_marker(EndTxnMarker(ControlType.UNKNOWN, 0))


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_a_broken_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="key"):
        parse_control_type(key)


@pytest.mark.parametrize("value", [None, b"", bytes(5), b"\xff\xff\x00\x00\x00\x00"])
def test_a_broken_value_is_refused(value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="marker"):
        parse_end_txn_marker(bytes(4), value)
