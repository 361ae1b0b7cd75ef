"""The checksum byte in the header of an lz4 frame, which clients of magic 0 got wrong.

Owns the patching of that one byte. The frame format asks for a hash of the descriptor only; the
first lz4 clients of Kafka hashed the frame's magic number as well, and still expect it so in
messages of magic 0.

LZ4 frame: | magic number 4 | FLG 1 | BD 1 | [content size 8] | [dictionary id 4] | HC 1 | blocks

    FLG     bit 3: content size present, bit 0: dictionary id present
    HC      second byte of the XXH32 hash (seed 0) of the descriptor: FLG up to HC
"""

from typing import Final

from storage.records.layout import Buffer

_DESCRIPTOR_POSITION: Final = 4
_SHORTEST_HEADER: Final = 7
_CONTENT_SIZE_FLAG: Final = 0x08
_DICTIONARY_FLAG: Final = 0x01

_PRIME_1: Final = 2654435761
_PRIME_2: Final = 2246822519
_PRIME_3: Final = 3266489917
_PRIME_4: Final = 668265263
_PRIME_5: Final = 374761393
_MASK: Final = 0xFFFFFFFF


def lz4_header_end(frame: Buffer) -> int:
    """Where the blocks of a frame begin, as its flags say."""
    end = _SHORTEST_HEADER
    if len(frame) > _DESCRIPTOR_POSITION:
        flags = frame[_DESCRIPTOR_POSITION]
        end += 8 * bool(flags & _CONTENT_SIZE_FLAG) + 4 * bool(flags & _DICTIONARY_FLAG)
    return end


def patch_lz4_header_checksum(frame: Buffer, *, as_old_clients: bool) -> bytes:
    """A copy of the frame with the right header checksum, or with that of the first clients."""
    patched = bytearray(frame)
    checksum_position = lz4_header_end(frame) - 1
    start = 0 if as_old_clients else _DESCRIPTOR_POSITION
    descriptor = bytes(patched[start:checksum_position])
    patched[checksum_position] = xxh32(descriptor) >> 8 & 0xFF
    return bytes(patched)


def xxh32(data: bytes) -> int:
    """The 32-bit xxHash with seed 0; written for the few bytes of a header, not for speed."""
    rest = data
    if len(data) >= 16:
        lanes = [_PRIME_1 + _PRIME_2 & _MASK, _PRIME_2, 0, -_PRIME_1 & _MASK]
        while len(rest) >= 16:
            for lane in range(4):
                word = int.from_bytes(rest[4 * lane : 4 * lane + 4], "little")
                lanes[lane] = _rotate(lanes[lane] + word * _PRIME_2, 13) * _PRIME_1 & _MASK
            rest = rest[16:]
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        value = _PRIME_5
    value += len(data)
    while len(rest) >= 4:
        value = _rotate(value + int.from_bytes(rest[:4], "little") * _PRIME_3, 17) * _PRIME_4
        rest = rest[4:]
    for byte in rest:
        value = _rotate(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 32 - bits) & _MASK
