"""The topics that benchmarks/analytics.py reads: produced to a broker, or written as files.

Run by itself with a log directory and a share of its first segment, it reads that as one task does
and prints what memory it took.
"""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from struct import Struct
from typing import Final

import numpy as np

from storage.records.builder import BatchBuilder

_SEED: Final = 1
_VALUES: Final = 1000
_SEGMENT_BYTES: Final = 1_000_000_000
_RECORDS_PER_BATCH: Final = 16
_INDEX_ENTRY: Final = Struct(">ii")
_TIME_INDEX_ENTRY: Final = Struct(">qi")
_START_MS: Final = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    record_bytes: int
    codec: str
    records: int

    def scaled(self, factor: float) -> "Topic":
        return replace(self, records=max(1000, int(self.records * factor)))


def values(size: int) -> list[bytes]:
    """Text that compresses as logs do: to about a third."""
    chance = random.Random(_SEED)
    words = [chance.randbytes(chance.randint(2, 6)).hex().encode() for _ in range(2000)]
    found = []
    for _ in range(_VALUES):
        text = b""
        while len(text) < size:
            text += chance.choice(words) + b" "
        found.append(text[:size])
    return found


def produce(bootstrap: str, topic: Topic) -> None:
    """Records with a key of ten bytes, in batches as librdkafka makes them by itself."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "compression.type": topic.codec, "linger.ms": 20}
    producer = Producer({**settings, "queue.buffering.max.messages": 500_000, "acks": 1})
    samples = values(topic.record_bytes)
    for number in range(topic.records):
        key = b"key%07d" % (number % 10_000_000)
        while True:
            try:
                producer.produce(topic.name, samples[number % _VALUES], key)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit(f"not all records of {topic.name} were delivered")


def write_large_topic(log_dir: Path, topic: str, total_bytes: int) -> int:
    """A partition of that many bytes, as segment files: one batch over and over, with offsets of
    its own each time. Returns the number of records."""
    directory = log_dir / f"{topic}-0"
    directory.mkdir(parents=True)
    builder = BatchBuilder(base_offset=0)
    for offset, value in enumerate(values(1000)[:_RECORDS_PER_BATCH]):
        builder.append(_START_MS, b"key%07d" % offset, value, (), offset)
    batch = np.frombuffer(bytes(builder.build()), np.uint8)
    offset = 0
    for size in _segment_sizes(total_bytes):
        count = size // len(batch)
        bases = offset + np.arange(count, dtype=np.int64) * _RECORDS_PER_BATCH
        path = directory / f"{offset:020d}"
        with path.with_suffix(".log").open("wb") as file:
            for part in np.array_split(bases, 16):
                batches = np.tile(batch, (len(part), 1))
                batches[:, :8] = part.astype(">i8").view(np.uint8).reshape(-1, 8)
                batches.tofile(file)
        lasts = bases - offset + _RECORDS_PER_BATCH - 1
        entries = np.stack([lasts, np.arange(count) * len(batch)], axis=1).astype(">i4")
        path.with_suffix(".index").write_bytes(entries[1:].tobytes())
        path.with_suffix(".timeindex").write_bytes(
            _TIME_INDEX_ENTRY.pack(_START_MS, _RECORDS_PER_BATCH - 1)
        )
        offset += count * _RECORDS_PER_BATCH
    return offset


def _segment_sizes(total: int) -> Iterator[int]:
    while total > 0:
        yield min(total, _SEGMENT_BYTES)
        total -= _SEGMENT_BYTES


def _read_as_one_task(log_dir: str, share: float) -> None:
    from analytics.logs.partitions import find_partitions
    from analytics.pieces import Piece
    from analytics.problems import skip
    from analytics.record_table import RecordQuery, read_records

    segment = find_partitions(log_dir)[0].segments[0]
    piece = Piece(segment, 0, int(segment.size * share))
    before = _peak_bytes()
    rows = sum(batch.num_rows for batch in read_records([piece], RecordQuery(), skip))
    print(
        f"{piece.size / 1e6:7,.0f} MB, {rows:9,} rows: {_peak_bytes() / 1e6:5.0f} MB at most,"
        f" {before / 1e6:.0f} MB before the first row"
    )


def _peak_bytes() -> int:
    """The most memory that this process has had; getrusage would count its parent's as well."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    _read_as_one_task(sys.argv[1], float(sys.argv[2]))
