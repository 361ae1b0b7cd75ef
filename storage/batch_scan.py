"""Walks over the batches of a segment file, of any magic, without opening them.

Owns finding where each batch begins and ends in a file. Must not know records inside batches,
indexes or what offsets mean to a log.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from storage.errors import CorruptIndexError
from storage.files import Descriptor
from storage.records.batches import Batch, is_intact, parse_header
from storage.records.errors import CorruptRecordError
from storage.records.layout import (
    BATCH_HEADER_SIZE,
    ENTRY_PREFIX,
    LOG_OVERHEAD,
    MAGIC_0,
    MAGIC_2,
    BatchHeader,
)
from storage.records.legacy import SHORTEST_MESSAGE

_LAST_OFFSET_DELTA: Final = Struct(">i")
_LAST_OFFSET_DELTA_POSITION: Final = 23

_LOOKUP_CHUNK: Final = 4096
_HEADER_CHUNK: Final = 64 * 1024
_BODY_CHUNK: Final = 1024 * 1024


class FoundBatch(NamedTuple):
    """Where a batch lies."""

    position: int
    size: int


class ScannedBatch(NamedTuple):
    """A whole batch in memory, and where it lies in its file."""

    position: int
    batch: Batch

    def check(self) -> None:
        """Refuse a batch whose bytes do not match its checksum."""
        if not is_intact(self.batch):
            raise CorruptRecordError(f"The batch at position {self.position} fails its checksum")


def find_batch(
    descriptor: Descriptor,
    offset: int,
    position: int,
    end: int,
    indexed_offset: int | None = None,
) -> FoundBatch | None:
    """The first batch from `position` on whose last offset is not below `offset`.

    `indexed_offset` is what an index says of that position, if one does; that there is no batch,
    or one that begins after that offset, shows that the index is wrong.
    """
    if indexed_offset is not None and not 0 <= position <= max(end - SHORTEST_MESSAGE, 0):
        raise _wrong_index(indexed_offset, position)
    while end - position >= SHORTEST_MESSAGE:
        chunk = descriptor.read(min(_LOOKUP_CHUNK, end - position), position)
        at = 0
        while len(chunk) - at >= SHORTEST_MESSAGE:
            last_offset, length, _, magic = ENTRY_PREFIX.unpack_from(chunk, at)
            if length <= 0 or not MAGIC_0 <= magic <= MAGIC_2:
                raise CorruptRecordError(f"There is no batch at position {position + at}")
            if indexed_offset is not None:
                if position and (last_offset > indexed_offset or length > end - position):
                    raise _wrong_index(indexed_offset, position)
                indexed_offset = None
            if magic == MAGIC_2:
                if len(chunk) - at < BATCH_HEADER_SIZE:
                    break
                last_offset += _LAST_OFFSET_DELTA.unpack_from(
                    chunk, at + _LAST_OFFSET_DELTA_POSITION
                )[0]
            size = length + LOG_OVERHEAD
            if last_offset >= offset:
                return FoundBatch(position + at, size)
            at += size
        if at == 0:
            return None
        position += at
    return None


def _wrong_index(offset: int, position: int) -> CorruptIndexError:
    return CorruptIndexError(f"Offset {offset} is not at position {position}")


def scan_headers(descriptor: Descriptor, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch in a range of a file; bodies are skipped."""
    position = start
    while end - position >= SHORTEST_MESSAGE:
        chunk = descriptor.read(min(_HEADER_CHUNK, end - position), position)
        is_last = position + len(chunk) >= end
        at = 0
        while len(chunk) - at >= (SHORTEST_MESSAGE if is_last else BATCH_HEADER_SIZE):
            size = LOG_OVERHEAD + ENTRY_PREFIX.unpack_from(chunk, at)[1]
            if position + at + size > end:
                return
            yield position + at, parse_header(chunk, at)
            at += size
        if at == 0:
            return
        position += at


def scan_batches(
    descriptor: Descriptor, start: int, end: int, chunk_bytes: int = _BODY_CHUNK
) -> Iterator[ScannedBatch]:
    """Each whole batch in a range of a file; stops quietly at one that is cut off by its end."""
    position = start
    wanted = chunk_bytes
    while end - position >= SHORTEST_MESSAGE:
        chunk = memoryview(descriptor.read(min(wanted, end - position), position))
        wanted = chunk_bytes
        at = 0
        while len(chunk) - at >= SHORTEST_MESSAGE:
            size = LOG_OVERHEAD + ENTRY_PREFIX.unpack_from(chunk, at)[1]
            if position + at + size > end:
                return
            if at + size > len(chunk):
                wanted = max(chunk_bytes, size)
                break
            header = parse_header(chunk, at)
            yield ScannedBatch(position + at, Batch(header, chunk[at : at + size]))
            at += size
        if at == 0 and wanted <= len(chunk):
            return
        position += at
