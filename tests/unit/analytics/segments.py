"""Segment files for tests, written batch by batch as a broker would."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from analytics.batch_table import read_batches, whole
from analytics.logs.partitions import Segment
from analytics.problems import Report, skip
from storage.records.builder import BatchBuilder, ProducerInfo
from storage.records.layout import Codec

START_MS = 1_700_000_000_000


def batch(
    base_offset: int,
    count: int,
    codec: Codec = Codec.NONE,
    producer: ProducerInfo | None = None,
    is_control: bool = False,
    log_append_time: int | None = None,
) -> bytearray:
    """A batch of `count` records, one millisecond apart, its first at START_MS + its offset."""
    builder = BatchBuilder(
        base_offset=base_offset,
        codec=codec,
        producer=producer or ProducerInfo(),
        is_control=is_control,
        log_append_time=log_append_time,
    )
    for offset in range(base_offset, base_offset + count):
        builder.append(START_MS + offset, b"key", b"value", (), offset)
    return builder.build()


def write_segment(
    log_dir: Path, partition: str, base_offset: int, batches: Iterable[bytes | bytearray] = ()
) -> Path:
    """`log_dir/partition/<base offset>.log` with these batches."""
    directory = log_dir / partition
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{base_offset:020d}.log"
    file.write_bytes(b"".join(batches))
    return file


def read_segment(segment: Segment, report: Report = skip) -> Iterator[pa.RecordBatch]:
    """The batch table of one segment, whatever is wrong with it."""
    return read_batches([whole(segment)], report, fail_on_data_loss=False)
