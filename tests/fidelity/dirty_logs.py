"""Logs that are worth compacting, written by our own engine: every kind of batch, many times over.

Owns what goes into the topics, the same for the same seed, and the ages of their files. Must not
know who compacts them.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final

from storage.append_info import AppendOrigin
from storage.checkpoint import CLEANER_CHECKPOINT, read_offsets
from storage.compaction.compact import compact_log
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.records import BatchBuilder, Codec, ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import NO_SEQUENCE, set_base_offset
from tests.fidelity.samples import Headers

# Young enough for its producers not to have expired, old enough for no lag to matter.
FIRST_TIMESTAMP: Final = time.time_ns() // 1_000_000 - 7_200_000
NOW: Final = FIRST_TIMESTAMP + 3_600_000
RETENTION_MS: Final = 10_000
COMPACTED: Final = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=4000,
    index_interval_bytes=400,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=RETENTION_MS,
)
LEADER_EPOCH: Final = 2
# Between the ages of two segments: whatever follows one is that much younger.
_AGE_STEP_MS: Final = 60_000
_COORDINATOR_EPOCH: Final = 7
_HEADERS: Final[tuple[Headers, ...]] = (
    (),
    (("trace", b"7"),),
    (("naïve", "Ω".encode()), ("nothing", None), ("empty", b"")),
)


@dataclass(slots=True)
class Writer:
    """Appends to one log what a number of clients would."""

    random: Random
    keys: int = 40
    codecs: tuple[Codec, ...] = (Codec.NONE,)
    producers: tuple[int, ...] = ()
    transactional: tuple[int, ...] = ()
    # Transactional producers that fall silent after one transaction, fenced by their coordinator.
    fenced: tuple[int, ...] = ()
    with_headers: bool = True
    keyless: bool = False
    most_records: int = 6
    log: Log = field(init=False)
    timestamp: int = FIRST_TIMESTAMP
    _sequences: dict[int, int] = field(default_factory=dict)
    _epochs: dict[int, int] = field(default_factory=dict)
    _open: set[int] = field(default_factory=set)

    def fork(self) -> "Writer":
        """One that goes on as this one will."""
        twin = replace(
            self,
            random=Random(),
            _sequences=dict(self._sequences),
            _epochs=dict(self._epochs),
            _open=set(self._open),
        )
        twin.random.setstate(self.random.getstate())
        return twin

    def write(self, appends: int) -> None:
        for producer_id in self.fenced:
            self.append(producer_id)
            self.end(producer_id, fences=True)
        self.fenced = ()
        for _ in range(appends):
            everybody = (NO_SEQUENCE, NO_SEQUENCE, *self.producers, *self.transactional)
            producer_id = self.random.choice(everybody)
            self.append(producer_id)
            if producer_id in self._open and self.random.random() < 0.4:
                self.end(producer_id, fences=self.random.random() < 0.2)

    def append(self, producer_id: int = NO_SEQUENCE) -> None:
        """One batch."""
        producer = ProducerInfo()
        if producer_id != NO_SEQUENCE:
            is_transactional = producer_id in self.transactional + self.fenced
            epoch = self._epochs.setdefault(producer_id, 0)
            sequence = self._sequences.get(producer_id, 0)
            producer = ProducerInfo(producer_id, epoch, sequence, is_transactional)
            if is_transactional:
                self._open.add(producer_id)
        builder = BatchBuilder(codec=self.random.choice(self.codecs), producer=producer)
        for _ in range(self.random.randint(1, self.most_records)):
            self.timestamp += self.random.choice((0, 0, 1, 90, -60, 3000))
            headers = self.random.choice(_HEADERS) if self.with_headers else ()
            builder.append(self.timestamp, self._key(), self._value(), headers)
        self._append(builder.build())
        if producer_id != NO_SEQUENCE:
            self._sequences[producer_id] = producer.base_sequence + builder.record_count

    def end(self, producer_id: int, *, fences: bool = False) -> None:
        """End a transaction one way or the other."""
        kind = self.random.choice((ControlType.COMMIT, ControlType.ABORT))
        if fences:
            self._epochs[producer_id] += 1
            self._sequences[producer_id] = 0
        marker = EndTxnMarker(kind, _COORDINATOR_EPOCH)
        batch = build_end_txn_batch(self.timestamp, producer_id, self._epochs[producer_id], marker)
        self._append(batch, AppendOrigin.COORDINATOR)
        self._open.discard(producer_id)

    def end_all(self) -> None:
        for producer_id in sorted(self._open):
            self.end(producer_id)

    def _append(self, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
        self.log.append_as_leader(batch, LEADER_EPOCH, origin)
        self.log.update_high_watermark(self.log.end_offset)

    def append_far_ahead(self, offset: int) -> None:
        """What a follower gets from a leader whose log was compacted: a gap in the offsets."""
        builder = BatchBuilder(leader_epoch=LEADER_EPOCH)
        for _ in range(3):
            builder.append(self.timestamp, self._key(), self._value())
        batch = builder.build()
        set_base_offset(batch, offset)
        self.log.append_as_follower(batch)
        self.log.update_high_watermark(self.log.end_offset)

    def _key(self) -> bytes | None:
        if self.keyless and self.random.random() < 0.3:
            return None
        return b"key-%d" % self.random.randrange(self.keys) if self.random.random() < 0.97 else b""

    def _value(self) -> bytes | None:
        kind = self.random.randrange(8)
        if kind == 0:
            return None
        return b"" if kind == 1 else self.random.randbytes(self.random.randrange(1, 60)) * 2


@dataclass(slots=True)
class DirtyLog:
    """One topic: how it is written, and in which settings it is compacted."""

    make_writer: Callable[[Random], Writer]
    config: LogConfig = COMPACTED
    appends: int = 120
    written_as: LogConfig | None = None
    then: Callable[[Writer], None] = Writer.end_all


def dirty_logs() -> dict[str, DirtyLog]:
    """All topics by name."""
    logs = {
        "idempotent": DirtyLog(lambda r: Writer(r, producers=(1, 2, 3), keys=20)),
        "transactional": DirtyLog(
            lambda r: Writer(r, transactional=(20, 21, 22), fenced=(30, 31, 32), keys=20)
        ),
        "undecided": DirtyLog(lambda r: Writer(r, transactional=(20, 21)), then=_leave_open),
        "far-apart": DirtyLog(Writer, then=_jump_ahead),
        "append-time": DirtyLog(Writer, replace(COMPACTED, message_timestamp_type="LogAppendTime")),
        "deleted-records": DirtyLog(Writer, then=_delete_records),
        "was-not-compacted": DirtyLog(
            lambda r: Writer(r, keyless=True),
            written_as=replace(COMPACTED, cleanup_policy=frozenset({"delete"})),
        ),
        "compact-and-delete": DirtyLog(
            Writer, replace(COMPACTED, cleanup_policy=frozenset({"compact", "delete"}))
        ),
        "large-batches": DirtyLog(
            lambda r: Writer(r, most_records=60, producers=(1,), codecs=tuple(Codec)),
            replace(COMPACTED, segment_bytes=40_000, index_interval_bytes=4096),
        ),
    }
    for codec in Codec:
        logs[f"plain-{codec.name.lower()}"] = DirtyLog(_of_codec(codec))
    for number in range(4):
        logs[f"mixed-{number}"] = DirtyLog(
            lambda r: Writer(
                r,
                producers=(1, 2, 9),
                transactional=(20, 21, 22),
                fenced=(30, 31),
                keys=60,
                codecs=tuple(Codec),
            ),
            appends=250,
        )
    for magic, version in ((0, "0.9.0"), (1, "0.10.2")):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            old = replace(COMPACTED, message_format_version=version)
            logs[f"v{magic}-{codec.name.lower()}"] = DirtyLog(_of_codec(codec, old=True), old)
    return logs


def _of_codec(codec: Codec, *, old: bool = False) -> Callable[[Random], Writer]:
    return lambda random: Writer(random, codecs=(codec,), with_headers=not old)


def _leave_open(writer: Writer) -> None:
    writer.end_all()
    writer.append(20)
    for _ in range(30):
        writer.append()


def _jump_ahead(writer: Writer) -> None:
    """No segment may hold what comes before such a jump and what follows it."""
    for number in (1, 2):
        writer.append_far_ahead(writer.log.end_offset + number * 2**30)
        writer.write(10)


def _delete_records(writer: Writer) -> None:
    writer.log.advance_start_offset(writer.log.end_offset // 3)


class DirtyDirectory:
    """A log directory with all of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = dirty_logs()

    @property
    def partitions(self) -> set[tuple[str, int]]:
        return {(topic, 0) for topic in self.logs}

    @property
    def configs(self) -> dict[str, LogConfig]:
        return {topic: dirty.config for topic, dirty in self.logs.items()}

    @property
    def cleaned_offsets(self) -> dict[tuple[str, int], int]:
        return {
            key: offset
            for key, offset in read_offsets(Files(), self.path / CLEANER_CHECKPOINT).items()
            if key in self.partitions
        }

    def write(self, writers: dict[str, Writer]) -> None:
        """Append to all logs and stop cleanly; each segment is younger than the one before."""
        manager = self._open()
        for topic, dirty in self.logs.items():
            writer = writers[topic]
            writer.log = log = manager.get_or_create(topic, 0, dirty.config)
            log.update_high_watermark(log.end_offset)
            log.update_config(dirty.written_as or dirty.config)
            writer.write(dirty.appends)
            dirty.then(writer)
            log.roll()
            log.update_config(dirty.config)
        manager.close()

    def set_ages(self) -> None:
        """Date the segments, each younger than the one before."""
        for topic in self.logs:
            for number, path in enumerate(sorted((self.path / f"{topic}-0").glob("*.log"))):
                time_ms = FIRST_TIMESTAMP + number * _AGE_STEP_MS
                os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def compact(self) -> None:
        """Have all logs compacted by our own cleaner.

        What lies before the start of a log goes first, as in Kafka, where the cleaner removes
        that of all logs after each log that it has cleaned.
        """
        manager = self._open()
        logs = [manager.get(topic, 0) for topic in self.logs]
        for log in logs:
            assert log is not None
            log.update_high_watermark(log.end_offset)
        manager.cleanup()
        for log in logs:
            assert log is not None
            assert compact_log(log) is not None, log.name
        manager.cleanup()
        manager.close()

    def _open(self) -> LogManager:
        manager = LogManager([self.path], COMPACTED, lambda: NOW)
        manager.load(self.configs)
        return manager


def new_writers(logs: dict[str, DirtyLog]) -> dict[str, Writer]:
    return {topic: dirty.make_writer(Random(topic)) for topic, dirty in logs.items()}
