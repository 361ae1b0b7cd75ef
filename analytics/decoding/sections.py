"""Opens batches: checks them, decompresses them, and lays their records open for the record loop.

Owns the scratch memory that compressed batches are opened into. Must not know Arrow, Spark, or
which records are wanted.
"""

from struct import error as struct_error
from typing import Any, Final

import cramjam
import numpy as np

from analytics.decoding.header_kernel import Header
from analytics.decoding.record_kernel import NO_APPEND_TIMESTAMP, REGION_COLUMNS, Region
from analytics.decoding.windows import Window
from storage.checksums import crc32, crc32c
from storage.records.compression import decompress
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


def intact_batches(headers: Any, window: Window) -> Any:
    """For each header, whether the checksum in it is that of the batch's bytes in the window."""
    data = memoryview(window.data)
    starts = (headers[:, Header.POSITION] - window.file_position).tolist()
    is_crc32c = headers[:, Header.MAGIC] == MAGIC_2
    checked = np.where(is_crc32c, ATTRIBUTES_POSITION, MESSAGE_CHECKED_POSITION).tolist()
    sizes = headers[:, Header.SIZE].tolist()
    checksums = [
        crc32c(data[start + skipped : start + size])
        if skipped == ATTRIBUTES_POSITION
        else crc32(data[start + skipped : start + size])
        for start, skipped, size in zip(starts, checked, sizes, strict=True)
    ]
    return np.array(checksums, np.int64) == headers[:, Header.CRC]


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
        self.data: Any = np.empty(_SCRATCH_BYTES, np.uint8)
        self._filled = 0
        self._expansion = _LIKELY_EXPANSION

    @property
    def is_full(self) -> bool:
        return self._filled >= _SCRATCH_BYTES // 8

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
        if codec is Codec.ZSTD and magic == MAGIC_2 and self._expand_zstd_in_place(section):
            return
        expanded = decompress(codec, section, magic)
        needed = len(expanded) // max(len(section), 1) + 1
        self._expansion = min(max(self._expansion, needed), _LARGEST_LIKELY_EXPANSION)
        end = self._filled + len(expanded)
        self._reserve(end)
        self.data[self._filled : end] = np.frombuffer(expanded, np.uint8)
        self._filled = end

    def _expand_zstd_in_place(self, section: memoryview) -> bool:
        """Straight into the scratch memory, where the room that batches needed so far is enough.
        Many producers do not declare what a frame expands to."""
        self._reserve(self._filled + self._expansion * len(section))
        try:
            self._filled += cramjam.zstd.decompress_into(section, self.data[self._filled :])
        except cramjam.DecompressionError:  # too little room, or damage, which is told by others
            return False
        return True

    def _reserve(self, size: int) -> None:
        if size > len(self.data):
            larger = np.empty(size, np.uint8)
            larger[: self._filled] = self.data[: self._filled]
            self.data = larger


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
