"""Variable-length integers of magic 2 records: zigzag, seven bits a byte, lowest bits first.

Owns their encoding and decoding. A number is folded first, so that small ones of either sign
take one byte: 0, -1, 1, -2 are written as 0, 1, 2, 3. Unfolding is `n >> 1 ^ -(n & 1)`.
"""

from typing import Final

from storage.records.errors import InvalidRecordError

_MAX_BITS: Final = 70  # ten bytes of seven bits hold any folded 64-bit number


def _encode(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


# Lengths and deltas are nearly always small, and a look-up is several times faster.
_SMALL: Final = {value: _encode(value) for value in range(-64, 2048)}


def encode_varint(value: int) -> bytes:
    """The bytes of a signed number of at most 64 bits."""
    return _SMALL.get(value) or _encode(value)


def decode_folded_tail(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Finish a number whose first byte, at `position - 1`, says that more bytes follow.

    Returns the folded number and the position after it; IndexError where the data ends. Readers
    handle the first byte themselves: most numbers have no other, and a call costs more than it.
    """
    folded = first & 0x7F
    byte = data[position]
    if byte < 0x80:
        return folded | byte << 7, position + 1
    folded |= (byte & 0x7F) << 7
    shift = 14
    while shift < _MAX_BITS:
        position += 1
        byte = data[position]
        folded |= (byte & 0x7F) << shift
        if byte < 0x80:
            return folded, position + 1
        shift += 7
    raise InvalidRecordError("A variable-length integer does not end after ten bytes")
