"""How long a broker's start waits for its logs: a thousand partitions, stopped or crashed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.storage_rows import (
    MEGABYTE,
    NOW_MS,
    Row,
    UnsyncedFiles,
    batch_of_bytes,
    seconds_of,
)
from storage.files import Files
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.records.layout import set_base_offset

PARTITIONS: Final = 1_000
BATCH_BYTES: Final = 10_000
BATCHES: Final = 10


def measure_starts(directory: Path) -> Iterator[Row]:
    """Load all logs after a clean stop, and after a crash with nothing flushed."""
    logs = LogManager([directory], LogConfig(), lambda: NOW_MS, UnsyncedFiles())
    batch = batch_of_bytes(BATCH_BYTES, 10)
    for partition in range(PARTITIONS):
        log = logs.get_or_create("topic", partition)
        for _ in range(BATCHES):
            set_base_offset(batch, 0)
            log.append_as_leader(batch, 0)
    logs.close()
    clean = _load(directory)
    yield Row(
        f"start with {PARTITIONS:,} partitions, clean",
        f"{clean:.2f} s",
        f"{clean / PARTITIONS * 1e6:.0f} us each",
    )
    (directory / "recovery-point-offset-checkpoint").unlink()
    crashed = _load(directory)
    volume = PARTITIONS * BATCHES * BATCH_BYTES / MEGABYTE
    yield Row(
        f"start with {PARTITIONS:,} partitions, after a crash",
        f"{crashed:.2f} s",
        f"{volume:.0f} MB checked, {volume / crashed:,.0f} MB/s",
        crashed / clean,
    )


def _load(directory: Path) -> float:
    """Seconds to load the logs; they are then left as a crash leaves them."""
    logs = LogManager([directory], LogConfig(), lambda: NOW_MS, Files())
    seconds = seconds_of(logs.load)
    assert len(logs.all_logs()) == PARTITIONS
    for log_directory in logs.directories:
        log_directory.unlock()
    return seconds
