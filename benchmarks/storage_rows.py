"""What the storage benchmarks share: a row of the table, a stopwatch, batches and logs."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from storage.environment import Environment
from storage.files import Descriptor, Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.builder import ANY_PRODUCER, BatchBuilder, ProducerInfo
from storage.records.layout import BATCH_HEADER_SIZE

NOW_MS: Final = 1_600_000_000_000
MEGABYTE: Final = 1_000_000
_RECORD_OVERHEAD: Final = 12


class Row(NamedTuple):
    """A line of the table; `bar` is what the ratio, or else the figure, must not exceed."""

    name: str
    figure: str
    yardstick: str = ""
    ratio: float | None = None
    bar: float | None = None
    holds: bool | None = None


class UnsyncedFiles(Files):
    """Real files that leave it to the system when to write: for what is not measured."""

    def sync(self, file: Descriptor) -> None:
        """Nothing: a benchmark's preparations need not survive."""


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def best_of(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Seconds of the best round of each, the rounds taking turns."""
    times = [[seconds_of(work) for work in works] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def batch_of_bytes(size: int, records: int, producer: ProducerInfo = ANY_PRODUCER) -> bytearray:
    """A batch of so many bytes (a varint may make it one more or less), incompressible."""
    lengths = [(size - BATCH_HEADER_SIZE) // records - _RECORD_OVERHEAD] * records
    batch = _build(lengths, producer)
    lengths[-1] += size - len(batch)
    return _build(lengths, producer)


def _build(lengths: list[int], producer: ProducerInfo) -> bytearray:
    builder = BatchBuilder(producer=producer)
    for length in lengths:
        builder.append(NOW_MS, None, os.urandom(length))
    return builder.build()


def open_log(directory: Path, config: LogConfig, *, clean: bool = True) -> Log:
    environment = Environment(clock=lambda: NOW_MS, files=UnsyncedFiles())
    return Log(environment, directory, config, clean=clean)
