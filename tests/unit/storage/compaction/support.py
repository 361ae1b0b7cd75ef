"""What the tests of compaction share: keyed batches, files that are as old as the clock says, and
readers that see a log as clients do."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from storage.append_info import AppendOrigin, ReadIsolation
from storage.batch_scan import scan_batches
from storage.compaction.settings import CleanerSettings
from storage.environment import Environment
from storage.faulty_files import FaultyFiles
from storage.files import Buffer, Descriptor
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.batches import Batch, iter_batches, iter_records
from storage.records.builder import (
    ANY_PRODUCER,
    BatchBuilder,
    ProducerInfo,
    build_end_txn_batch,
)
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import Codec
from storage.records.legacy_builder import LegacyBuilder
from tests.unit.storage.support import NOW, ManualClock

SETTINGS = CleanerSettings(dedupe_buffer_size=1024 * 1024)
COMPACTED = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=1000,
    segment_index_bytes=1200,
    index_interval_bytes=100,
    delete_retention_ms=1000,
    file_delete_delay_ms=0,
)

KeyValue = tuple[bytes | None, bytes | None]


class Seen(NamedTuple):
    """A record as a reader sees it."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class TimedFiles(FaultyFiles):
    """Files whose time of modification is that of a clock which tests move."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def pwrite(self, file: Descriptor, data: Buffer, position: int) -> int:
        written = super().pwrite(file, data, position)
        os.utime(file.fileno(), ns=(self._clock.now * 1_000_000, self._clock.now * 1_000_000))
        return written


def open_compacted(
    directory: Path,
    config: LogConfig = COMPACTED,
    clock: ManualClock | None = None,
    *,
    clean: bool = False,
    **changes: object,
) -> Log:
    clock = clock or ManualClock()
    return Log(
        Environment(clock=clock, files=TimedFiles(clock)),
        directory / "topic-0",
        replace(config, **changes),  # type: ignore[arg-type]
        clean=clean,
    )


def keyed_batch(
    records: Iterable[KeyValue],
    codec: Codec = Codec.NONE,
    producer: ProducerInfo = ANY_PRODUCER,
    timestamp: int = NOW,
    log_append_time: int | None = None,
) -> bytearray:
    """A batch of magic 2; each record is a millisecond younger and has a header."""
    builder = BatchBuilder(codec=codec, producer=producer, log_append_time=log_append_time)
    for number, (key, value) in enumerate(records):
        builder.append(timestamp + number, key, value, [("number", b"%d" % number)])
    return builder.build()


def legacy_batch(
    magic: int, records: Iterable[KeyValue], codec: Codec = Codec.NONE, timestamp: int = NOW
) -> bytearray:
    """Messages of magic 0 or 1, in a wrapper if there is a codec."""
    builder = LegacyBuilder(magic, base_offset=0, codec=codec)
    for number, (key, value) in enumerate(records):
        builder.append(timestamp + number, key, value, number)
    return builder.build()


def append(log: Log, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> int:
    """Append as leader with all replicas in sync; returns the first offset."""
    info = log.append_as_leader(batch, 0, origin)
    log.update_high_watermark(log.end_offset)
    return info.first_offset


def append_pairs(log: Log, *records: KeyValue, codec: Codec = Codec.NONE) -> int:
    """Append one batch with these records."""
    return append(log, keyed_batch(records, codec, timestamp=log.environment.clock()))


def append_segments(log: Log, *segments: Sequence[KeyValue]) -> None:
    """Append one batch for each record, and roll after each of the segments."""
    for records in segments:
        for record in records:
            append_pairs(log, record)
        log.roll()


def transactional(producer_id: int, sequence: int = 0, epoch: int = 0) -> ProducerInfo:
    return ProducerInfo(producer_id, epoch, sequence, is_transactional=True)


def end_transaction(log: Log, producer_id: int, *, commits: bool, epoch: int = 0) -> int:
    control_type = ControlType.COMMIT if commits else ControlType.ABORT
    marker = build_end_txn_batch(
        log.environment.clock(), producer_id, epoch, EndTxnMarker(control_type, 0)
    )
    return append(log, marker, AppendOrigin.COORDINATOR)


def batches_of(log: Log) -> list[Batch]:
    """All batches, straight from the segments; each must be intact."""
    batches = []
    for segment in log.segments:
        end = 0
        for scanned in scan_batches(segment.descriptor(), 0, segment.size):
            scanned.check()
            batches.append(scanned.batch)
            end = scanned.position + len(scanned.batch.data)
        assert end == segment.size
    return batches


def records_of(log: Log) -> list[Seen]:
    """All records but transaction markers."""
    return [
        Seen(record.offset, record.key, record.value, record.timestamp)
        for batch in batches_of(log)
        if not batch.header.is_control
        for record in iter_records(batch)
    ]


def pairs_of(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(seen.offset, seen.key, seen.value) for seen in records_of(log)]


def committed_of(log: Log) -> list[Seen]:
    """What a client that reads committed records gets, fetch by fetch, offsets ascending."""
    seen: list[Seen] = []
    offset = log.start_offset
    while True:
        read = log.read(offset, 300, ReadIsolation.COMMITTED)
        data = read.slice.read()
        if not data:
            return seen
        aborted = sorted((one.first_offset, one.producer_id) for one in read.aborted or ())
        skipped: set[int] = set()
        for batch in iter_batches(data):
            header = batch.header
            while aborted and aborted[0][0] <= header.last_offset:
                skipped.add(aborted.pop(0)[1])
            if header.is_control:
                skipped -= _ended_by(batch)
            elif not (header.is_transactional and header.producer_id in skipped):
                seen += [
                    Seen(record.offset, record.key, record.value, record.timestamp)
                    for record in iter_records(batch)
                    if record.offset >= offset
                ]
            offset = header.next_offset


def _ended_by(marker: Batch) -> set[int]:
    is_abort = any(record.key == b"\0\0\0\0" for record in iter_records(marker))
    return {marker.header.producer_id} if is_abort else set()


def table_of(records: Iterable[Seen]) -> dict[bytes, bytes]:
    """The table that a client builds from a compacted log."""
    table: dict[bytes, bytes] = {}
    for record in records:
        if record.key is not None and record.value is not None:
            table[record.key] = record.value
        elif record.key is not None:
            table.pop(record.key, None)
    return table


def producers_of(log: Log) -> dict[int, tuple[int, int]]:
    """Epoch and last sequence number of each producer."""
    return {
        entry.producer_id: (entry.epoch, entry.last_sequence)
        for entry in log.producers.producers.values()
    }


def file_names(log: Log) -> Iterator[str]:
    return (path.name for path in sorted(log.directory.iterdir()))
