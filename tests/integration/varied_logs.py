"""Logs of every kind, written batch by batch, and the list of what was written.

The list is what the tests of the analyses count for themselves, in plain Python.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from storage.records.builder import ANY_PRODUCER, BatchBuilder, ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import MAGIC_1, MAGIC_2, Codec, set_base_offset
from storage.records.legacy_builder import LegacyBuilder
from tests.unit.analytics.segments import write_segment

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MONDAY = 1_699_833_600_000  # 2023-11-13 00:00 UTC

Said = tuple[int, bytes | None, bytes | None]  # timestamp, key, value


class WrittenRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"")


class WrittenBatch(NamedTuple):
    log_dir: str
    topic: str
    partition: int
    segment: int
    last_offset: int
    records: tuple[WrittenRecord, ...]
    bytes: int
    codec: str
    magic: int
    timestamp_type: str | None
    producer: ProducerInfo
    marker: str | None
    stamp: int | None  # of a marker

    @property
    def times(self) -> list[int]:
        return [one.timestamp for one in self.records if one.timestamp is not None]

    @property
    def last_time(self) -> int | None:
        return max(self.times, default=self.stamp)


class LogWriter:
    """One partition's log in one log directory."""

    def __init__(self, log_dir: Path, topic: str, partition: int, start: int = 0) -> None:
        self.batches: list[WrittenBatch] = []
        self._log_dir = log_dir
        self.topic = topic
        self.partition = partition
        self._next = start
        self._segment = start
        self._files: dict[int, list[bytes | bytearray]] = {start: []}

    def roll(self) -> None:
        self._segment = self._next
        self._files[self._segment] = []

    def skip(self, offsets: int) -> None:
        """What compaction has taken away."""
        self._next += offsets

    def write(
        self,
        said: Sequence[Said],
        codec: Codec = Codec.NONE,
        producer: ProducerInfo = ANY_PRODUCER,
        append_time: int | None = None,
        magic: int = MAGIC_2,
        offsets: Iterable[int] | None = None,
    ) -> None:
        """One batch. `offsets` are relative, where some were compacted away."""
        builder: BatchBuilder | LegacyBuilder
        if magic == MAGIC_2:
            builder = BatchBuilder(
                base_offset=self._next, codec=codec, producer=producer, log_append_time=append_time
            )
        else:
            builder = LegacyBuilder(
                magic, base_offset=self._next, codec=codec, log_append_time=append_time
            )
        records = []
        for relative, (timestamp, key, value) in zip(
            offsets or range(len(said)), said, strict=True
        ):
            offset = self._next + relative
            if isinstance(builder, BatchBuilder):
                headers = (("trace", b"7"),) if relative % 3 == 0 else ()
                builder.append(timestamp, key, value, headers, offset)
            else:
                builder.append(timestamp, key, value, offset)
            at = timestamp if append_time is None else append_time
            place = (self.topic, self.partition, offset)
            records.append(WrittenRecord(*place, at if magic else None, key, value))
        kind = "CreateTime" if append_time is None else "LogAppendTime"
        self._keep(
            builder.build(), records, codec, magic, kind if magic else None, producer, None, None
        )

    def write_messages(self, said: Sequence[Said], magic: int) -> None:
        """Messages of an old format that are not compressed, each by itself."""
        for one in said:
            self.write([one], magic=magic)

    def end(self, producer: ProducerInfo, marker: ControlType, stamp: int) -> None:
        """The marker that ends a transaction."""
        epoch = producer.producer_epoch
        data = build_end_txn_batch(stamp, producer.producer_id, epoch, EndTxnMarker(marker, 0))
        set_base_offset(data, self._next)
        name = marker.name.lower()
        self._keep(data, [], Codec.NONE, MAGIC_2, "CreateTime", producer, name, stamp)

    def drop_last(self) -> None:
        """As a replica that has not fetched the last batch."""
        self._files[self.batches.pop().segment].pop()

    def close(self) -> list[WrittenBatch]:
        for base_offset, batches in self._files.items():
            name = f"{self.topic}-{self.partition}"
            file = write_segment(self._log_dir, name, base_offset, batches)
            for kind in (".index", ".timeindex"):
                file.with_suffix(kind).touch()
        return self.batches

    def _keep(
        self,
        data: bytearray,
        records: Sequence[WrittenRecord],
        codec: Codec,
        magic: int,
        kind: str | None,
        producer: ProducerInfo,
        marker: str | None,
        stamp: int | None,
    ) -> None:
        last_offset = records[-1].offset if records else self._next
        self._files[self._segment].append(data)
        self.batches.append(
            WrittenBatch(
                str(self._log_dir),
                self.topic,
                self.partition,
                self._segment,
                last_offset,
                tuple(records),
                len(data),
                codec.name.lower(),
                magic,
                kind,
                producer,
                marker,
                stamp,
            )
        )
        self._next = last_offset + 1


def old_messages(log: LogWriter, said: Sequence[Said]) -> None:
    """The two old formats, plain and in wrappers."""
    log.write_messages(said[:3], magic=0)
    log.write(said[3:6], Codec.GZIP, magic=0)
    log.write_messages(said[6:9], magic=MAGIC_1)
    log.write(said[9:12], Codec.SNAPPY, magic=MAGIC_1)
    log.write(said[12:], Codec.LZ4, magic=MAGIC_1, append_time=MONDAY + 5 * HOUR)
