"""Appends and sequential reads of a log, beside the system calls that move the same bytes."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.storage_rows import MEGABYTE, NOW_MS, Row, batch_of_bytes, best_of, open_log
from storage.append_info import ReadIsolation
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.builder import BatchBuilder, ProducerInfo
from storage.records.layout import BATCH_HEADER_SIZE, set_base_offset

# Short rounds, so that some of them are not interrupted by whatever else the machine does.
ROUNDS: Final = 200
READ_ROUNDS: Final = 40
LARGE_BYTES: Final = 1_000_000
LARGE_PER_ROUND: Final = 2
SMALL_BYTES: Final = 200
SMALL_PER_ROUND: Final = 300
LARGE_BAR_RATIO: Final = 1.5
SMALL_BAR_MICROSECONDS: Final = 15.0
FETCH_BYTES: Final = 1 << 20


def measure_appends(directory: Path) -> Iterator[Row]:
    """Batches of 1 MB and of 200 bytes, as they come from producers."""
    large = batch_of_bytes(LARGE_BYTES, 1000)
    with plain_file(directory) as descriptor:
        log = open_log(directory / "large-0", LogConfig())
        plain, appended = best_of(
            ROUNDS,
            lambda: write(descriptor, large, LARGE_PER_ROUND),
            lambda: append(log, large, LARGE_PER_ROUND),
        )
    shutil.rmtree(log.directory)
    ratio = appended / plain
    volume = len(large) * LARGE_PER_ROUND / MEGABYTE
    yield Row(
        "append, 1 MB batches",
        f"{volume / appended:,.0f} MB/s",
        f"os.write {volume / plain:,.0f} MB/s",
        ratio,
        LARGE_BAR_RATIO,
        ratio <= LARGE_BAR_RATIO,
    )
    small = batch_of_bytes(SMALL_BYTES, 1)
    log = open_log(directory / "small-0", LogConfig())
    yield _small_row(
        "append, 200-byte batches",
        directory,
        small,
        lambda: append(log, small, SMALL_PER_ROUND),
    )
    log = open_log(directory / "idempotent-0", LogConfig())
    batches = idempotent_batches(ROUNDS * SMALL_PER_ROUND)
    yield _small_row(
        "append, 200-byte batches, idempotent",
        directory,
        small,
        lambda: append_each(log, islice(batches, SMALL_PER_ROUND)),
    )


@contextmanager
def plain_file(directory: Path) -> Iterator[int]:
    path = directory / "plain"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        path.unlink()


def _small_row(name: str, directory: Path, batch: bytearray, appended: Callable[[], None]) -> Row:
    with plain_file(directory) as descriptor:
        times = best_of(ROUNDS, lambda: write(descriptor, batch, SMALL_PER_ROUND), appended)
    plain, own = (seconds / SMALL_PER_ROUND * 1e6 for seconds in times)
    return Row(
        name,
        f"{own:.1f} us",
        f"os.write {plain:.1f} us",
        own / plain,
        SMALL_BAR_MICROSECONDS,
        own <= SMALL_BAR_MICROSECONDS,
    )


def write(descriptor: int, data: bytearray, times: int) -> None:
    for _ in range(times):
        os.write(descriptor, data)


def append(log: Log, batch: bytearray, times: int) -> None:
    for _ in range(times):
        set_base_offset(batch, 0)  # as producers send it; the append has put its offset there
        log.append_as_leader(batch, 0)


def append_each(log: Log, batches: Iterable[bytearray]) -> None:
    for batch in batches:
        log.append_as_leader(batch, 0)


def idempotent_batches(count: int) -> Iterator[bytearray]:
    """Batches of one producer, one record each, made before anybody takes the time."""
    value = os.urandom(SMALL_BYTES - BATCH_HEADER_SIZE - 10)
    batches: list[bytearray] = []
    for sequence in range(count):
        builder = BatchBuilder(producer=ProducerInfo(1, 0, sequence))
        builder.append(NOW_MS, None, value)
        batches.append(builder.build())
    return iter(batches)


def measure_reads(directory: Path) -> Iterator[Row]:
    """Fetches of 1 MB one after another, the bytes taken along or left to sendfile."""
    log = open_log(directory / "topic-0", LogConfig())
    append(log, batch_of_bytes(LARGE_BYTES // 10, 100), 500)
    path = log.segments.active.path()
    size = log.segments.active.size
    plain, copied, slices = best_of(
        READ_ROUNDS,
        lambda: read_file(path, size),
        lambda: read_log(log, copying=True),
        lambda: read_log(log, copying=False),
    )
    volume = size / MEGABYTE
    yield Row(
        "read in order, bytes copied",
        f"{volume / copied:,.0f} MB/s",
        f"os.pread {volume / plain:,.0f} MB/s",
        copied / plain,
    )
    fetches = size / FETCH_BYTES
    yield Row("read in order, slices for sendfile", f"{slices / fetches * 1e6:.1f} us per fetch")


def read_file(path: str, size: int) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    for position in range(0, size, FETCH_BYTES):
        os.pread(descriptor, FETCH_BYTES, position)
    os.close(descriptor)


def read_log(log: Log, *, copying: bool) -> None:
    """Follow the log; all its batches have a hundred records and are of one size."""
    batch_bytes = log.segments.active.size // (log.end_offset // 100)
    offset = 0
    while offset < log.end_offset:
        found = log.read(offset, FETCH_BYTES, ReadIsolation.LOG_END).slice
        if copying:
            found.read()
        offset += max(found.length // batch_bytes, 1) * 100
