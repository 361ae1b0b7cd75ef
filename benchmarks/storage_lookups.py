"""Look-ups by offset in logs of very different sizes: the cost must be that of the smallest.

The logs are sparse: complete indexes, but only those batches have bytes that will be looked up.
"""

from collections.abc import Iterable, Iterator
from itertools import cycle, islice, pairwise
from pathlib import Path
from random import Random
from struct import Struct
from typing import Final

from benchmarks.storage_rows import NOW_MS, Row, best_of, open_log
from storage.append_info import ReadIsolation
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.builder import BatchBuilder
from storage.records.layout import BATCH_HEADER_SIZE
from storage.segment_files import segment_path

ROUNDS: Final = 200
LOOKUPS_PER_ROUND: Final = 100
SAMPLES: Final = 2_000
BATCH_BYTES: Final = 4096
SEGMENT_BYTES: Final = 1024**3
SIZES: Final = {"100 MB": 100 * 1024**2, "1 GB": SEGMENT_BYTES, "10 GB": 10 * SEGMENT_BYTES}
FLAT_RATIO: Final = 1.5
_INDEX_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


def measure_lookups(directory: Path) -> Iterator[Row]:
    """Random offsets, the same number of them in each log."""
    logs = [
        (make_sparse_log(directory / f"sparse-{number}", size), size // BATCH_BYTES)
        for number, size in enumerate(SIZES.values())
    ]
    offsets = [cycle(sampled_offsets(batches)) for _, batches in logs]
    times = best_of(
        ROUNDS,
        *(
            lambda log=log, wanted=wanted: look_up(log, islice(wanted, LOOKUPS_PER_ROUND))
            for (log, _), wanted in zip(logs, offsets, strict=True)
        ),
    )
    first = times[0]
    for name, seconds in zip(SIZES, times, strict=True):
        ratio = seconds / first
        yield Row(
            f"look-up of a random offset, {name}",
            f"{seconds / LOOKUPS_PER_ROUND * 1e6:.1f} us",
            "that of 100 MB",
            ratio,
            FLAT_RATIO,
            ratio <= FLAT_RATIO,
        )


def look_up(log: Log, offsets: Iterable[int]) -> None:
    for offset in offsets:
        found = log.read(offset, 1, ReadIsolation.LOG_END)
        assert found.slice.length == BATCH_BYTES


def sampled_offsets(batches: int) -> list[int]:
    random = Random(batches)
    return [random.randrange(batches) for _ in range(SAMPLES)]


def make_sparse_log(directory: Path, size: int) -> Log:
    """A log of one-record batches of 4 KB; only those in the sample, and the last, are there."""
    directory.mkdir()
    batches = size // BATCH_BYTES
    per_segment = SEGMENT_BYTES // BATCH_BYTES
    bases = [*range(0, batches, per_segment), batches]
    wanted = sorted({*sampled_offsets(batches), batches - 1})
    for base, end in pairwise(bases):
        offsets = [offset for offset in wanted if base <= offset < end]
        write_sparse_segment(str(directory), base, end - base, offsets)
    return open_log(directory, LogConfig())


def write_sparse_segment(directory: str, base: int, batches: int, offsets: list[int]) -> None:
    with open(segment_path(directory, base, "log"), "wb") as file:
        for offset in offsets:
            file.seek((offset - base) * BATCH_BYTES)
            file.write(batch_at(offset)[:BATCH_HEADER_SIZE])
        file.truncate(batches * BATCH_BYTES)
    entries = (_INDEX_ENTRY.pack(number, number * BATCH_BYTES) for number in range(1, batches))
    Path(segment_path(directory, base, "index")).write_bytes(b"".join(entries))
    last = _TIME_ENTRY.pack(NOW_MS, batches - 1)
    Path(segment_path(directory, base, "timeindex")).write_bytes(last)


def batch_at(offset: int) -> bytes:
    builder = BatchBuilder(base_offset=offset, leader_epoch=0)
    builder.append(NOW_MS, None, bytes(BATCH_BYTES - BATCH_HEADER_SIZE - 9))
    batch = bytes(builder.build())
    assert len(batch) == BATCH_BYTES, len(batch)
    return batch
