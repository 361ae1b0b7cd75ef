"""The codecs of record batches, in the framings that Kafka's clients write and read.

Owns `compress` and `decompress` of a whole records part, and their limits: data that is damaged,
or that would expand beyond all proportion, raises `DecompressionError`, never a codec's own
exception. Must not know batches or records. The codec packages are imported when first used:
a broker that only stores batches needs none of them.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error
from typing import Final, cast

from storage.records.errors import DecompressionError
from storage.records.layout import MAGIC_0, MAGIC_2, Buffer, Codec
from storage.records.lz4_header import lz4_header_end, patch_lz4_header_checksum

# A batch may expand to the larger of these two; beyond it is taken for a decompression bomb.
LEAST_EXPANSION_LIMIT: Final = 128 * 1024 * 1024
LARGEST_EXPANSION_RATIO: Final = 32

_GZIP_WINDOW: Final = 31  # zlib's number for its largest window within a gzip header and trailer
_ZSTD_LEVEL: Final = 3
_ZSTD_INPUT_STEP: Final = 512  # four bytes can expand to 128 KiB, so input is fed in small steps

# Snappy as Java's clients frame it: a header, then blocks, each with its length in front.
#   magic 8 | version 4 | compatible version 4 | ( block length 4 | raw snappy block )*
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = Struct(">8sii")
_XERIAL_BLOCK_LENGTH: Final = Struct(">I")
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
# No raw snappy element expands more than 64 bytes out of 3.
_SNAPPY_MAX_RATIO: Final = 22


def expansion_limit(compressed_size: int) -> int:
    """To how many bytes a batch of this compressed size may expand."""
    return max(LEAST_EXPANSION_LIMIT, compressed_size * LARGEST_EXPANSION_RATIO)


def compress(codec: Codec, data: bytes, magic: int = MAGIC_2) -> bytes:
    """Compress a records part; the magic matters for lz4, whose old framing was flawed."""
    if codec is Codec.NONE:
        return data
    if codec is Codec.GZIP:
        return zlib.compress(data, wbits=_GZIP_WINDOW)
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    if codec is Codec.LZ4:
        return _compress_lz4(data, magic)
    import zstandard

    return zstandard.ZstdCompressor(_ZSTD_LEVEL).compress(data)


def decompress(codec: Codec, data: Buffer, magic: int = MAGIC_2, limit: int | None = None) -> bytes:
    """Decompress a records part to at most `limit` bytes (by default in proportion)."""
    if codec is Codec.NONE:
        return bytes(data)
    if limit is None:
        limit = expansion_limit(len(data))
    if codec is Codec.GZIP:
        expanded = _decompress_gzip(data, limit)
    elif codec is Codec.SNAPPY:
        expanded = _decompress_snappy(data, limit)
    elif codec is Codec.LZ4:
        expanded = _decompress_lz4(data, magic, limit)
    else:
        expanded = _decompress_zstd(data, limit)
    return expanded


def _too_large(codec: Codec, limit: int) -> DecompressionError:
    return DecompressionError(f"{codec.name.lower()} data expands beyond {limit} bytes")


def _damaged(codec: Codec, reason: object) -> DecompressionError:
    return DecompressionError(f"Damaged {codec.name.lower()} data: {reason}")


def _decompress_gzip(data: Buffer, limit: int) -> bytes:
    expanded = b""
    rest: Buffer = data
    while True:  # a stream may consist of several members
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            expanded += member.decompress(rest, limit - len(expanded) + 1)
        except zlib.error as error:
            raise _damaged(Codec.GZIP, error) from None
        if len(expanded) > limit:
            raise _too_large(Codec.GZIP, limit)
        if not member.eof:
            raise _damaged(Codec.GZIP, "it ends too early")
        rest = member.unused_data
        if not rest:
            return expanded


def _compress_snappy(data: bytes) -> bytes:
    import snappy

    framed = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1)]
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = snappy.compress(data[start : start + _XERIAL_BLOCK_SIZE])
        framed.append(_XERIAL_BLOCK_LENGTH.pack(len(block)))
        framed.append(block)
    return b"".join(framed)


def _snappy_blocks(data: Buffer) -> Iterator[bytes]:
    """The raw blocks of framed data; data without the frame, as librdkafka sends, is one block."""
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield bytes(data)
        return
    if len(data) < _XERIAL_HEADER.size:
        raise _damaged(Codec.SNAPPY, "it ends inside its header")
    position = _XERIAL_HEADER.size
    while position < len(data):
        try:
            (length,) = _XERIAL_BLOCK_LENGTH.unpack_from(data, position)
        except struct_error:
            raise _damaged(Codec.SNAPPY, "it ends inside a block's length") from None
        position += _XERIAL_BLOCK_LENGTH.size
        block = bytes(data[position : position + length])
        if len(block) != length:
            raise _damaged(Codec.SNAPPY, f"a block of {length} bytes ends too early")
        yield block
        position += length


def _snappy_expanded_size(block: bytes) -> int:
    """The size that a raw block declares, an unsigned varint in front, before it is allocated."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if size > _SNAPPY_MAX_RATIO * len(block):
                raise _damaged(Codec.SNAPPY, f"a block of {len(block)} bytes declares {size}")
            return size
    raise _damaged(Codec.SNAPPY, "a block does not declare its size")


def _decompress_snappy(data: Buffer, limit: int) -> bytes:
    import snappy

    blocks = []
    total = 0
    for block in _snappy_blocks(data):
        total += _snappy_expanded_size(block)
        if total > limit:
            raise _too_large(Codec.SNAPPY, limit)
        try:
            blocks.append(snappy.decompress(block))
        except snappy.UncompressError as error:
            raise _damaged(Codec.SNAPPY, error.__cause__ or error) from None
    return b"".join(blocks)


def _compress_lz4(data: bytes, magic: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.compress(
        data,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,  # Kafka's reader knows independent blocks only
        store_size=False,
    )
    if magic == MAGIC_0:
        frame = patch_lz4_header_checksum(frame, as_old_clients=True)
    return cast("bytes", frame)


def _decompress_lz4(data: Buffer, magic: int, limit: int) -> bytes:
    import lz4.frame

    if magic == MAGIC_0 and len(data) > lz4_header_end(data):
        # Old clients wrote a wrong checksum here and others the right one; either is accepted.
        data = patch_lz4_header_checksum(data, as_old_clients=False)
    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        expanded = frame.decompress(data, max_length=limit + 1)
    except RuntimeError as error:
        raise _damaged(Codec.LZ4, error) from None
    if len(expanded) > limit:
        raise _too_large(Codec.LZ4, limit)
    if not frame.eof:
        raise _damaged(Codec.LZ4, "it ends too early")
    if frame.unused_data:
        raise _damaged(Codec.LZ4, f"{len(frame.unused_data)} bytes follow its end")
    return cast("bytes", expanded)


def _decompress_zstd(data: Buffer, limit: int) -> bytes:
    import zstandard

    rest = memoryview(data)
    pieces = []
    total = 0
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    while rest:  # several frames may follow one another
        if frame.eof:
            frame = decompressor.decompressobj()
        try:
            piece = frame.decompress(rest[:_ZSTD_INPUT_STEP])
        except zstandard.ZstdError as error:
            raise _damaged(Codec.ZSTD, error) from None
        pieces.append(piece)
        total += len(piece)
        if total > limit:
            raise _too_large(Codec.ZSTD, limit)
        rest = rest[len(rest[:_ZSTD_INPUT_STEP]) - len(frame.unused_data) :]
    if not frame.eof:
        raise _damaged(Codec.ZSTD, "it ends too early")
    return b"".join(pieces)
