"""The codecs: round trips, framings of other clients, damage, and data that would explode."""

import contextlib
import gzip
import tracemalloc
import zlib

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka import codec as kafka_python

from storage.records.compression import LEAST_EXPANSION_LIMIT, compress, decompress, expansion_limit
from storage.records.errors import DecompressionError
from storage.records.layout import Codec

REAL_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"the quick brown fox jumps over the lazy dog; " * 3000

KAFKA_PYTHON_ENCODERS = {
    Codec.GZIP: kafka_python.gzip_encode,
    Codec.SNAPPY: kafka_python.snappy_encode,
    Codec.LZ4: kafka_python.lz4_encode,
    Codec.ZSTD: kafka_python.zstd_encode,
}
KAFKA_PYTHON_DECODERS = {
    Codec.GZIP: kafka_python.gzip_decode,
    Codec.SNAPPY: kafka_python.snappy_decode,
    Codec.LZ4: kafka_python.lz4_decode,
    Codec.ZSTD: kafka_python.zstd_decode,
}


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", Codec)
@given(st.binary(max_size=2000))
def test_data_is_decompressed_to_what_it_was(codec: Codec, magic: int, data: bytes) -> None:
    assert decompress(codec, compress(codec, data, magic), magic) == data


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_more_than_one_block_is_compressed_and_decompressed(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    assert len(compressed) < len(TEXT) / 4
    assert decompress(codec, memoryview(compressed)) == TEXT
    assert decompress(codec, bytearray(compressed)) == TEXT


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_kafka_python_reads_what_is_written_here_and_the_other_way_round(codec: Codec) -> None:
    assert bytes(KAFKA_PYTHON_DECODERS[codec](compress(codec, TEXT))) == TEXT
    assert decompress(codec, KAFKA_PYTHON_ENCODERS[codec](TEXT)) == TEXT


def test_snappy_without_the_java_framing_is_read_too() -> None:
    assert decompress(Codec.SNAPPY, snappy.compress(TEXT)) == TEXT


def test_snappy_is_written_in_the_java_framing_of_32_kib_blocks() -> None:
    compressed = compress(Codec.SNAPPY, TEXT)
    assert compressed[:16] == b"\x82SNAPPY\x00" + bytes([0, 0, 0, 1, 0, 0, 0, 1])
    length = int.from_bytes(compressed[16:20])
    assert snappy.decompress(compressed[20 : 20 + length]) == TEXT[: 32 * 1024]


def test_lz4_is_written_in_independent_blocks_of_64_kib_without_size() -> None:
    header = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))
    assert header["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB
    assert not header["block_linked"]
    assert header["content_size"] == 0


def test_lz4_of_magic_0_is_read_with_right_and_with_old_header_checksum() -> None:
    old = compress(Codec.LZ4, TEXT, magic=0)
    right = compress(Codec.LZ4, TEXT, magic=1)
    assert old != right
    assert decompress(Codec.LZ4, old, magic=0) == TEXT
    assert decompress(Codec.LZ4, right, magic=0) == TEXT
    with pytest.raises(DecompressionError, match="header"):
        decompress(Codec.LZ4, old, magic=1)


def test_streams_of_several_gzip_members_or_zstd_frames_are_read_to_their_end() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one, ") + gzip.compress(b"two")) == b"one, two"
    frames = [zstandard.compress(part) for part in (b"one, ", TEXT, b"two")]
    assert decompress(Codec.ZSTD, b"".join(frames)) == b"one, " + TEXT + b"two"


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_data_cut_off_anywhere_is_one_clear_error(codec: Codec) -> None:
    compressed = compress(codec, TEXT[:300])
    block_ends = {16} if codec is Codec.SNAPPY else set()  # between blocks, a frame may end
    for length in set(range(len(compressed))) - block_ends:
        with pytest.raises(DecompressionError, match=codec.name.lower()):
            decompress(codec, compressed[:length])


@pytest.mark.parametrize("magic", [0, 2])
@pytest.mark.parametrize("codec", REAL_CODECS)
@given(data=st.data())
def test_flipped_bits_never_raise_a_codecs_own_error(
    codec: Codec, magic: int, data: st.DataObject
) -> None:
    damaged = bytearray(compress(codec, TEXT[:500], magic))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(DecompressionError):
        decompress(codec, damaged, magic)


@pytest.mark.parametrize("codec", REAL_CODECS)
@given(data=st.binary(max_size=100))
def test_arbitrary_bytes_never_raise_a_codecs_own_error(codec: Codec, data: bytes) -> None:
    with contextlib.suppress(DecompressionError):
        decompress(codec, data)


def test_bytes_after_the_end_of_an_lz4_frame_are_refused() -> None:
    with pytest.raises(DecompressionError, match="3 bytes follow"):
        decompress(Codec.LZ4, compress(Codec.LZ4, TEXT) + b"abc")


def bomb(codec: Codec, size: int) -> bytes:
    return compress(codec, bytes(size))


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_data_that_expands_beyond_the_limit_is_refused(codec: Codec) -> None:
    assert decompress(codec, bomb(codec, 1000), limit=1000) == bytes(1000)
    with pytest.raises(DecompressionError, match="beyond 1000 bytes"):
        decompress(codec, bomb(codec, 1001), limit=1000)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_takes_little_memory_before_it_is_refused(codec: Codec) -> None:
    size, limit = 64 * 1024 * 1024, 1024 * 1024
    compressed = bomb(codec, size)
    tracemalloc.start()
    try:
        with pytest.raises(DecompressionError, match="beyond"):
            decompress(codec, compressed, limit=limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 2


def test_snappy_that_declares_an_absurd_size_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(DecompressionError, match="declares 4294967295"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 20)


def test_the_limit_grows_with_the_compressed_size() -> None:
    assert expansion_limit(1000) == LEAST_EXPANSION_LIMIT
    assert expansion_limit(100 * 1024 * 1024) == 32 * 100 * 1024 * 1024


def test_uncompressed_data_is_taken_as_it_is() -> None:
    assert decompress(Codec.NONE, memoryview(b"abc")) == b"abc"
    assert zlib.crc32(compress(Codec.NONE, TEXT)) == zlib.crc32(TEXT)
