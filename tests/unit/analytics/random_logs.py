"""Random logs, written by the log engine, and the plain list of what was written.

Owns what a log may hold: batches of all formats and codecs, gaps as compaction leaves them,
transactions that end well, badly or not at all, small segments with indexes of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from storage.environment import Environment
from storage.log import Log
from storage.log_config import INT64_MAX, LogConfig
from storage.records.batches import parse_header
from storage.records.builder import BatchBuilder, ProducerInfo, build_empty_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import MAGIC_0, MAGIC_1, MAGIC_2, Codec
from storage.records.legacy_builder import LegacyBuilder
from storage.records.record import RecordHeader
from tests.unit.analytics.segments import START_MS
from tests.unit.storage.support import ManualClock

NO_TIMESTAMP_TYPE, CREATE_TIME, APPEND_TIME = -1, 0, 1
_LEGACY_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)


class Written(NamedTuple):
    """One record."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None


@dataclass(slots=True)
class WrittenBatch:
    """One batch, or one message of the old formats."""

    base_offset: int
    last_offset: int
    size: int
    magic: int
    codec: Codec
    max_timestamp: int
    records: tuple[Written, ...]
    producer_id: int | None = None
    is_transactional: bool = False
    is_control: bool = False
    is_aborted: bool = False
    is_damaged: bool = False


@dataclass(slots=True)
class RandomLog:
    """What lies in one partition's directory."""

    topic: str
    partition: int
    log: Log
    batches: list[WrittenBatch] = field(default_factory=list)
    open_since: dict[int, int] = field(default_factory=dict)

    @property
    def directory(self) -> Path:
        return Path(self.log.directory)

    @property
    def last_stable_offset(self) -> int:
        return min(self.open_since.values(), default=INT64_MAX)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0


class LogWriter:
    """Appends to one random log."""

    def __init__(self, random: Random, log_dir: Path, topic: str, partition: int) -> None:
        self._random = random
        config = LogConfig(
            segment_bytes=random.choice((20_000, 1 << 20)),
            index_interval_bytes=random.choice((1, 100, 700, 4096)),
            segment_index_bytes=random.choice((120, 4000)),
            preallocate=random.random() < 0.2,
        )
        environment = Environment(clock=ManualClock(START_MS))
        log = Log(environment, log_dir / f"{topic}-{partition}", config)
        self.found = RandomLog(topic, partition, log)
        self._next_offset = 0
        self._now = START_MS
        self._waiting: list[bytes] = []
        self._magics = random.choice(((MAGIC_2,), (MAGIC_2,), (MAGIC_0, MAGIC_1, MAGIC_2)))

    def write(self, appends: int) -> RandomLog:
        self._write_batch(ProducerInfo())
        for _ in range(appends):
            for _ in range(self._random.choice((1, 1, 1, 3))):
                self._write_something()
            self._flush()
        return self.found

    def _write_something(self) -> None:
        random = self._random
        magic = random.choice(self._magics)
        chance = random.random()
        if chance < 0.15:
            self._next_offset += random.choice((1, 2, 40))
        elif chance < 0.45 and magic == MAGIC_2:
            self._write_transactional()
        elif chance < 0.5 and magic == MAGIC_2:
            self._write_empty()
        elif chance < 0.58:
            self._flush()
            self.found.log.roll()
        elif magic == MAGIC_2:
            self._write_batch(ProducerInfo())
        else:
            self._write_messages(magic)

    def _flush(self) -> None:
        if self._waiting:
            self.found.log.append_as_follower(b"".join(self._waiting))
            self._waiting.clear()

    def _timestamp(self) -> int:
        self._now += self._random.choice((0, 1, 1, 5, 1000, -700))
        return self._now

    def _field(self) -> bytes | None:
        size = self._random.choice((-1, 0, 1, 5, 30, 60))
        return None if size < 0 else self._random.randbytes(size // 2) + bytes(size - size // 2)

    def _headers(self) -> list[RecordHeader]:
        count = self._random.choice((0, 0, 0, 1, 3))
        return [(self._random.choice(("", "a", "kéy")), self._field()) for _ in range(count)]

    def _offsets(self) -> list[int]:
        count = self._random.choice((1, 1, 2, 5, 20))
        offsets = range(self._next_offset, self._next_offset + count)
        if self._random.random() < 0.2:  # what compaction left of it
            return [n for n in offsets if n == offsets[-1] or self._random.random() < 0.5]
        return list(offsets)

    def _write_batch(self, producer: ProducerInfo) -> None:
        random = self._random
        offsets = self._offsets()
        append_time = self._timestamp() if random.random() < 0.2 else None
        codec = random.choice(tuple(Codec))
        builder = BatchBuilder(
            base_offset=self._next_offset,
            codec=codec,
            producer=producer,
            log_append_time=append_time,
            leader_epoch=0,
        )
        records = []
        for offset in offsets:
            key, value, headers = self._field(), self._field(), self._headers()
            timestamp = self._timestamp()
            builder.append(timestamp, key, value, headers, offset)
            kind = CREATE_TIME if append_time is None else APPEND_TIME
            records.append(
                Written(
                    offset,
                    timestamp if append_time is None else append_time,
                    kind,
                    key,
                    value,
                    tuple(headers) or None,
                )
            )
        last = offsets[-1] + (random.choice((1, 3)) if random.random() < 0.1 else 0)
        self._add(builder.build(last), tuple(records), codec)

    def _write_messages(self, magic: int) -> None:
        codec = self._random.choice(_LEGACY_CODECS)
        append_time = self._timestamp() if magic and self._random.random() < 0.2 else None
        offsets = self._offsets()
        groups = [offsets] if codec is not Codec.NONE else [[offset] for offset in offsets]
        for group in groups:
            builder = LegacyBuilder(
                magic, base_offset=group[0], codec=codec, log_append_time=append_time
            )
            records = []
            for offset in group:
                key, value, timestamp = self._field(), self._field(), self._timestamp()
                builder.append(timestamp, key, value, offset)
                if magic == MAGIC_0:
                    timestamp, kind = -1, NO_TIMESTAMP_TYPE
                elif append_time is not None:
                    timestamp, kind = append_time, APPEND_TIME
                else:
                    kind = CREATE_TIME
                records.append(Written(offset, timestamp, kind, key, value, None))
            self._add(builder.build(), tuple(records), codec)

    def _write_empty(self) -> None:
        builder = BatchBuilder(base_offset=self._next_offset, leader_epoch=0)
        builder.append(self._timestamp(), None, None)
        empty = build_empty_batch(parse_header(builder.build()))
        self._add(empty, (), Codec.NONE)

    def _write_transactional(self) -> None:
        random = self._random
        producer_id = random.choice((1, 2, 3))
        if producer_id in self.found.open_since and random.random() < 0.5:
            self._end_transaction(
                producer_id, random.choice((ControlType.ABORT, ControlType.COMMIT))
            )
            return
        self._write_batch(ProducerInfo(producer_id, 0, 0, is_transactional=True))
        self.found.open_since.setdefault(producer_id, self.found.batches[-1].base_offset)

    def _end_transaction(self, producer_id: int, outcome: ControlType) -> None:
        producer = ProducerInfo(producer_id, 0, -1, is_transactional=True)
        builder = BatchBuilder(
            base_offset=self._next_offset, producer=producer, is_control=True, leader_epoch=0
        )
        timestamp = self._timestamp()
        builder.append_end_txn_marker(timestamp, EndTxnMarker(outcome, 0))
        marker = Written(self._next_offset, timestamp, CREATE_TIME, None, None, None)
        since = self.found.open_since.pop(producer_id)
        if outcome is ControlType.ABORT:
            for batch in self.found.batches:
                if batch.producer_id == producer_id and batch.base_offset >= since:
                    batch.is_aborted = True
        self._add(builder.build(), (marker,), Codec.NONE)

    def _add(self, data: bytearray, records: Sequence[Written], codec: Codec) -> None:
        header = parse_header(data)
        base = header.base_offset if header.magic == MAGIC_2 else records[0].offset
        self.found.batches.append(
            WrittenBatch(
                base,
                header.last_offset,
                len(data),
                header.magic,
                codec,
                header.max_timestamp,
                tuple(records),
                header.producer_id if header.producer_id >= 0 else None,
                header.is_transactional,
                header.is_control,
            )
        )
        self._next_offset = header.last_offset + 1
        self._waiting.append(bytes(data))
