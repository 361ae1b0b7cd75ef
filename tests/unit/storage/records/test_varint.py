"""Zigzag varints: known encodings, any 64-bit number, and broken ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.records.errors import InvalidRecordError
from storage.records.varint import decode_folded_tail, encode_varint


def decode(data: bytes) -> tuple[int, int]:
    folded, position = data[0], 1
    if folded > 0x7F:
        folded, position = decode_folded_tail(data, position, folded)
    return folded >> 1 ^ -(folded & 1), position


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8191, "fe7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_known_numbers_have_their_known_bytes(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert decode(bytes.fromhex(encoded)) == (value, len(encoded) // 2)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_any_number_is_read_back_whatever_follows_it(value: int, rest: bytes) -> None:
    encoded = encode_varint(value)
    assert decode(encoded + rest) == (value, len(encoded))


def test_a_number_that_does_not_end_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="ten bytes"):
        decode(b"\xff" * 11)


def test_data_that_ends_inside_a_number_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        decode(b"\xff\xff")
