"""How fast a log is compacted, beside copying its bytes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.storage_rows import MEGABYTE, NOW_MS, Row, open_log, seconds_of
from storage.compaction.compact import compact_log
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.builder import BatchBuilder
from storage.records.layout import Codec

CONFIG: Final = LogConfig(
    cleanup_policy=frozenset({"compact"}), segment_bytes=16 * 1024**2, min_cleanable_dirty_ratio=0.0
)
RECORDS: Final = 100_000
RECORDS_PER_BATCH: Final = 100
VALUE_BYTES: Final = 500


def measure_compaction(directory: Path) -> Iterator[Row]:
    """Logs of 50 MB of which one record in ten, or every record, stays."""
    for number, (name, keys, codec) in enumerate(
        (
            ("a tenth stays", RECORDS // 10, Codec.NONE),
            ("all stays", RECORDS * 100, Codec.NONE),
            ("a tenth stays, lz4", RECORDS // 10, Codec.LZ4),
        )
    ):
        log = make_log(directory / f"topic-{number}", keys, codec)
        copied = seconds_of(lambda log=log: copy(log))  # type: ignore[misc]
        size = log.size_in_bytes / MEGABYTE
        cleaned = seconds_of(lambda log=log: compact_log(log))  # type: ignore[misc]
        yield Row(
            f"compaction, {name}",
            f"{size / cleaned:,.0f} MB/s",
            f"copied {size / copied:,.0f} MB/s",
            cleaned / copied,
        )
        shutil.rmtree(log.directory)


def make_log(directory: Path, keys: int, codec: Codec) -> Log:
    random = Random(1)
    log = open_log(directory, CONFIG)
    for _ in range(RECORDS // RECORDS_PER_BATCH):
        builder = BatchBuilder(codec=codec)
        for _ in range(RECORDS_PER_BATCH):
            key = b"key-%09d" % random.randrange(keys)
            builder.append(NOW_MS, key, os.urandom(VALUE_BYTES // 2) * 2)
        log.append_as_leader(builder.build(), 0)
    log.roll()
    log.update_high_watermark(log.end_offset)
    return log


def copy(log: Log) -> None:
    for segment in log.segments:
        path = Path(segment.path())
        shutil.copyfile(path, path.with_suffix(".copy"))
        path.with_suffix(".copy").unlink()
