"""Opens batches: checks them, decompresses them, and lays their records open for the record loop.

Owns the scratch memory that compressed batches are opened into. Must not know Arrow, Spark, or
which records are wanted.
"""

from struct import error as struct_error
from typing import Any, Final

import numpy as np
import zstandard

from analytics.decoding.header_kernel import Header
from analytics.decoding.record_kernel import NO_APPEND_TIMESTAMP, REGION_COLUMNS, Region
from storage.checksums import crc32, crc32c
from storage.records.compression import decompress, expansion_limit
from storage.records.errors import CorruptRecordError
from storage.records.layout import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    LOG_APPEND_TIME_FLAG,
    MAGIC_2,
    Codec,
    codec_of,
)
from storage.records.legacy import (
    FIELD_LENGTH,
    MESSAGE_CHECKED_POSITION,
    MESSAGE_HEADER_0,
    MESSAGE_HEADER_1,
)

_SCRATCH_BYTES: Final = 4 << 20
_LIKELY_EXPANSION: Final = 4
_LARGEST_LIKELY_EXPANSION: Final = 16

_zstd: Final = zstandard.ZstdDecompressor()


def is_intact(header: Any, data: memoryview) -> bool:
    """Whether the checksum in a header is that of the batch's bytes."""
    if header[Header.MAGIC] == MAGIC_2:
        return bool(crc32c(data[ATTRIBUTES_POSITION:]) == header[Header.CRC])
    return bool(crc32(data[MESSAGE_CHECKED_POSITION:]) == header[Header.CRC])


def plain_regions(headers: Any, file_position: int) -> Any:
    """The regions of uncompressed batches, where they lie in their window."""
    regions = _regions(headers)
    starts = headers[:, Header.POSITION] - file_position
    is_batch = headers[:, Header.MAGIC] == MAGIC_2
    regions[:, Region.START] = starts + np.where(is_batch, BATCH_HEADER_SIZE, 0)
    regions[:, Region.END] = starts + headers[:, Header.SIZE]
    return regions


def _regions(headers: Any) -> Any:
    regions = np.zeros((len(headers), REGION_COLUMNS), np.int64)
    is_append_time = headers[:, Header.ATTRIBUTES] & LOG_APPEND_TIME_FLAG != 0
    regions[:, Region.MAGIC] = headers[:, Header.MAGIC]
    regions[:, Region.RECORD_COUNT] = headers[:, Header.RECORD_COUNT]
    regions[:, Region.BASE_OFFSET] = headers[:, Header.BASE_OFFSET]
    regions[:, Region.BASE_TIMESTAMP] = headers[:, Header.BASE_TIMESTAMP]
    regions[:, Region.APPEND_TIMESTAMP] = np.where(
        is_append_time, headers[:, Header.MAX_TIMESTAMP], NO_APPEND_TIMESTAMP
    )
    regions[:, Region.TIMESTAMP_TYPE] = is_append_time
    regions[:, Region.FILE_POSITION] = headers[:, Header.POSITION]
    regions[:, Region.FILE_BYTES] = headers[:, Header.SIZE]
    return regions


class Scratch:
    """Memory for the records of compressed batches, several at a time."""

    def __init__(self) -> None:
        self.data = np.empty(_SCRATCH_BYTES, np.uint8)
        self._filled = 0
        self._expansion = _LIKELY_EXPANSION

    @property
    def is_full(self) -> bool:
        return self._filled >= _SCRATCH_BYTES // 2

    def clear(self) -> None:
        self._filled = 0
        if len(self.data) > _SCRATCH_BYTES:
            self.data = np.empty(_SCRATCH_BYTES, np.uint8)

    def open(self, header: Any, batch: memoryview) -> Any:
        """Decompress a batch; its region. Raises RecordDataError, as decompressing does."""
        codec = codec_of(int(header[Header.ATTRIBUTES]) & CODEC_MASK)
        magic = int(header[Header.MAGIC])
        section = batch[BATCH_HEADER_SIZE:] if magic == MAGIC_2 else _wrapped(batch, magic)
        start = self._filled
        self._append(codec, section, magic)
        region = _regions(header.reshape(1, -1))
        region[0, Region.START] = start
        region[0, Region.END] = self._filled
        region[0, Region.IS_WRAPPED] = magic != MAGIC_2
        return region

    def _append(self, codec: Codec, section: memoryview, magic: int) -> None:
        expanded = (
            self._expand_zstd(section)
            if codec is Codec.ZSTD and magic == MAGIC_2
            else decompress(codec, section, magic)
        )
        end = self._filled + len(expanded)
        self._reserve(end)
        self.data[self._filled : end] = np.frombuffer(expanded, np.uint8)
        self._filled = end

    def _expand_zstd(self, section: memoryview) -> bytes:
        """In one step where that is safe: twice as fast as the small steps of `decompress`, which
        cannot be surprised by what a frame expands to. Many producers do not declare that size;
        room for what batches needed so far costs less than room for any."""
        if zstandard.FRAME_HEADER in bytes(section[len(zstandard.FRAME_HEADER) :]):
            return decompress(Codec.ZSTD, section)  # one step stops, silently, after one frame
        for expansion in (self._expansion, _LARGEST_LIKELY_EXPANSION):
            expanded = _expand_in_one_step(section, expansion * len(section))
            if expanded is not None:
                needed = max(self._expansion, len(expanded) // len(section) + 1)
                self._expansion = min(needed, _LARGEST_LIKELY_EXPANSION)
                return expanded
        return decompress(Codec.ZSTD, section)

    def _reserve(self, size: int) -> None:
        if size > len(self.data):
            larger = np.empty(size, np.uint8)
            larger[: self._filled] = self.data[: self._filled]
            self.data = larger


def _expand_in_one_step(section: memoryview, likely_size: int) -> bytes | None:
    """None for an unlikely size, or damage."""
    try:
        declared_size = zstandard.frame_content_size(section)
        if max(declared_size, likely_size) > expansion_limit(len(section)):
            return None
        expanded: bytes = _zstd.decompress(
            section, max_output_size=likely_size, allow_extra_data=False
        )
    except zstandard.ZstdError:
        return None
    return expanded


def _wrapped(message: memoryview, magic: int) -> memoryview:
    """The value of a wrapper message of magic 0 or 1."""
    position = MESSAGE_HEADER_1.size if magic else MESSAGE_HEADER_0.size
    try:
        (key_length,) = FIELD_LENGTH.unpack_from(message, position)
        position += FIELD_LENGTH.size + max(key_length, 0)
        (length,) = FIELD_LENGTH.unpack_from(message, position)
    except struct_error:
        raise CorruptRecordError("A wrapper message ends inside its key or value") from None
    position += FIELD_LENGTH.size
    if not 0 <= length <= len(message) - position:
        raise CorruptRecordError(f"A wrapper message has a value of {length} bytes")
    return message[position : position + length]
