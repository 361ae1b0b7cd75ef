"""Producer state in a file (`.snapshot`), so that a restart need not read the log again.

Owns the layout and which snapshots of a log exist. A snapshot's name is the offset up to which
the state is known. Of the batches that a producer may send again only the last one is kept.

File, big endian:

     0           2       6                  10
    +-----------+-------+------------------+---------------+----
    | version 2 | crc 4 | number of        | entries, 46   |
    | (1)       |       | producers 4      | bytes each    |
    +-----------+-------+------------------+---------------+----
    crc: CRC-32C of all that follows it

Entry:

    +---------------+---------+-----------------+---------------+----------------+
    | producer id 8 | epoch 2 | last sequence 4 | last offset 8 | offset delta 4 |
    +---------------+---------+-----------------+---------------+----------------+
    | timestamp 8 | coordinator epoch 4 | first offset of the open transaction 8 (-1: none) |
    +-------------+---------------------+---------------------------------------------------+
"""

import os
from bisect import insort
from collections.abc import Iterable
from struct import Struct
from typing import Final

from storage.checksums import crc32c
from storage.errors import CorruptSnapshotError
from storage.files import Files
from storage.producer_entry import BatchSpan, ProducerEntry
from storage.segment_files import SNAPSHOT_KIND, segment_path

_HEADER: Final = Struct(">hIi")
_CRC_FIELD: Final = Struct(">I")
_CRC_POSITION: Final = 2
_CHECKED_POSITION: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot file."""
    encoded = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for entry in entries
    ]
    data = bytearray(_HEADER.pack(_VERSION, 0, len(encoded)) + b"".join(encoded))
    _CRC_FIELD.pack_into(data, _CRC_POSITION, crc32c(memoryview(data)[_CHECKED_POSITION:]))
    return bytes(data)


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers of a snapshot file."""
    if len(data) < _HEADER.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"The version is {version}, {_VERSION} is expected")
    if crc32c(memoryview(data)[_CHECKED_POSITION:]) != crc:
        raise CorruptSnapshotError("The checksum does not match")
    body = data[_HEADER.size :]
    if len(body) != count * _ENTRY.size:
        raise CorruptSnapshotError(f"{len(body)} bytes do not hold {count} producers")
    return [_decode_entry(fields) for fields in _ENTRY.iter_unpack(body)]


def _decode_entry(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first = fields
    batches = [BatchSpan(sequence, offset, delta, timestamp)] if offset >= 0 else []
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, first, batches)


class Snapshots:
    """The snapshot files of one log."""

    __slots__ = ("_files", "_is_synced", "directory", "offsets")

    def __init__(
        self, files: Files, directory: str, offsets: Iterable[int], *, is_synced: bool = False
    ) -> None:
        """`is_synced`: the latest one is on the disk for sure."""
        self._files = files
        self._is_synced = is_synced
        self.directory = directory
        # Changed by single steps only: a thread may remove old snapshots meanwhile.
        self.offsets = sorted(offsets)

    @property
    def latest(self) -> int | None:
        return self.offsets[-1] if self.offsets else None

    def write(self, offset: int, entries: Iterable[ProducerEntry]) -> None:
        self._files.write_whole(self.path(offset), encode_snapshot(entries), durable=False)
        self._is_synced = False
        if offset not in self.offsets:
            insort(self.offsets, offset)

    def sync(self) -> None:
        """Bring the latest snapshot to the disk: after a clean stop nothing else is looked at."""
        if self.latest is not None and not self._is_synced:
            self._files.sync(self._files.open(self.path(self.latest), os.O_RDONLY))
            self._files.sync_directory(self.directory)
            self._is_synced = True

    def read(self, offset: int) -> list[ProducerEntry]:
        try:
            return decode_snapshot(self._files.read_whole(self.path(offset)))
        except FileNotFoundError:
            raise CorruptSnapshotError("The file is gone") from None

    def keep_within(self, first_offset: int, last_offset: int) -> None:
        """Remove all snapshots but those from `first_offset` to `last_offset`."""
        for offset in list(self.offsets):
            if not first_offset <= offset <= last_offset:
                self.remove(offset)

    def remove(self, offset: int) -> None:
        self._files.unlink(self.path(offset))
        if offset in self.offsets:
            self.offsets.remove(offset)

    def path(self, offset: int) -> str:
        return segment_path(self.directory, offset, SNAPSHOT_KIND)


class FrozenSnapshots(Snapshots):
    """A view of a log's snapshots that can be loaded from, but leaves the files alone."""

    __slots__ = ()

    def __init__(self, snapshots: Snapshots) -> None:
        super().__init__(snapshots._files, snapshots.directory, snapshots.offsets)

    def write(self, offset: int, entries: Iterable[ProducerEntry]) -> None:
        """Nothing is written."""

    def remove(self, offset: int) -> None:
        """Only this view forgets the snapshot."""
        self.offsets.remove(offset)
