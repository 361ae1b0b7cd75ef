"""Logs that are read again and again while a thread appends to them, rolls, deletes and compacts
them: whatever the moment, a reader sees what the log was at one."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from analytics.errors import AnalysisError
from storage.compaction.compact import compact_log
from storage.log import Log
from storage.records.builder import BatchBuilder
from storage.records.control import ControlType
from storage.records.layout import Codec
from storage.retention import enforce_retention
from tests.unit.analytics.logs import SMALL_SEGMENTS, Transactions, append
from tests.unit.analytics.reading import offsets, records
from tests.unit.analytics.segments import START_MS
from tests.unit.analytics.streams import EARLIEST, reader
from tests.unit.analytics.streams import offsets as stream_offsets
from tests.unit.storage.support import ManualClock, open_log

STEPS, SHORT_SOAK_STEPS, SOAK_STEPS = 100, 500, 3000
LIVE = replace(SMALL_SEGMENTS, segment_bytes=6000, file_delete_delay_ms=0)

each_length = pytest.mark.parametrize(
    "steps",
    [
        STEPS,
        pytest.param(
            SHORT_SOAK_STEPS if os.environ.get("BARNABAS_SOAK") == "short" else SOAK_STEPS,
            marks=[pytest.mark.soak, pytest.mark.timeout(1200)],
        ),
    ],
)


@pytest.fixture(autouse=True)
def threads_that_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def while_written(write: Callable[[], None], read: Callable[[], None]) -> None:
    """Read as long as a thread writes, and once more. What fails in either fails the test."""
    with ThreadPoolExecutor(1) as executor:
        writing: Future[None] = executor.submit(write)
        try:
            while not writing.done():
                read()
        finally:
            writing.result()
    read()


def remove_old(log: Log) -> None:
    log.update_high_watermark(log.end_offset)
    enforce_retention(log)
    log.environment.deferred_deletes.run(log.environment.files, log.environment.clock())


@each_length
@pytest.mark.parametrize("preallocate", [False, True])
def test_a_log_that_grows_and_loses_its_beginning(
    tmp_path: Path, steps: int, preallocate: bool
) -> None:
    config = replace(LIVE, retention_bytes=30_000, preallocate=preallocate)
    log = open_log(tmp_path, config, clock=ManualClock(START_MS))
    append(log, 20)
    random = Random(1)

    def write() -> None:
        for _ in range(steps):
            append(log, random.randrange(1, 60), random.choice((Codec.NONE, Codec.ZSTD)))
            if random.random() < 0.1:
                remove_old(log)

    def read() -> None:
        start, end = log.start_offset, log.end_offset
        options = {"maxBytesPerTask": random.choice(("1000", "100000"))}
        try:
            found = offsets(tmp_path, **options)
        except AnalysisError as error:
            if "was deleted while it was read" in str(error):
                return
            raise
        assert found == list(range(found[0], found[-1] + 1))
        # The log start follows its files, which another thread may have renamed already.
        assert start <= found[0] <= log.segments.first.base_offset
        assert end - 1 <= found[-1]

    while_written(write, read)
    log.close()


@each_length
def test_a_log_that_is_compacted(tmp_path: Path, steps: int) -> None:
    config = replace(LIVE, cleanup_policy=frozenset({"compact"}))
    log = open_log(tmp_path, config, clock=ManualClock(START_MS))
    written: dict[int, tuple[bytes, bytes]] = {}
    latest: dict[bytes, int] = {}
    random = Random(2)

    def write() -> None:
        for step in range(steps):
            builder = BatchBuilder(codec=random.choice((Codec.NONE, Codec.LZ4)))
            base = log.end_offset
            for number in range(random.randrange(1, 40)):
                key, value = b"%d" % random.randrange(50), b"%060d" % (base + number)
                builder.append(START_MS, key, value)
                written[base + number] = key, value
            log.append_as_leader(builder.build(), 0)
            latest.update((written[offset][0], offset) for offset in range(base, log.end_offset))
            log.update_high_watermark(log.end_offset)
            if step % 10 == 9:
                compact_log(log)
                log.environment.deferred_deletes.run(log.environment.files, START_MS)

    def read() -> None:
        before = dict(latest)
        rows = records(tmp_path, maxBytesPerTask=random.choice(("1000", "100000")))
        found = [row["offset"] for row in rows]
        assert found == sorted({*found})
        assert all((row["key"], row["value"]) == written[row["offset"]] for row in rows)
        seen = {row["key"]: row["offset"] for row in rows}
        for key, offset in before.items():
            assert seen.get(key, -1) >= offset or latest[key] > offset

    append(log, 1)
    written[0] = b"key0", b"%050d" % 0
    while_written(write, read)
    log.close()


class TransactionalWriter:
    """Three producers whose transactions interleave; some are aborted."""

    def __init__(self, log: Log, steps: int) -> None:
        self._producers = Transactions(log)
        self._steps = steps
        self._random = Random(3)
        self._open: dict[int, list[int]] = {}
        self.log = log
        self.committed: set[int] = set()

    def write(self) -> None:
        for _ in range(self._steps * 5):  # which are small ones
            producer = self._random.randrange(3)
            if producer in self._open and self._random.random() < 0.5:
                self._end(producer)
            else:
                found = self._producers.write(producer, self._random.randrange(1, 9))
                self._open.setdefault(producer, []).extend(found)
        for producer in [*self._open]:
            self._end(producer)

    def _end(self, producer: int) -> None:
        is_committed = self._random.random() < 0.6
        written = self._open.pop(producer)
        if is_committed:  # before the marker, for a reader may be quick
            self.committed.update(written)
        outcome = ControlType.COMMIT if is_committed else ControlType.ABORT
        self._producers.end(producer, outcome)


@each_length
def test_a_log_with_transactions(tmp_path: Path, steps: int) -> None:
    writer = TransactionalWriter(open_log(tmp_path, LIVE, clock=ManualClock(START_MS)), steps)
    reads: list[list[int]] = []
    while_written(
        writer.write,
        lambda: reads.append(offsets(tmp_path, isolationLevel="read_committed")),
    )
    expected = sorted(writer.committed)
    for found in reads:
        assert found == expected[: len(found)]
    assert reads[-1] == expected
    writer.log.close()


@each_length
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_streams_of_a_live_log_read_all_and_each_record_once(
    tmp_path: Path, isolation: str, steps: int
) -> None:
    writer = TransactionalWriter(open_log(tmp_path, LIVE, clock=ManualClock(START_MS)), steps)
    options = {"isolationLevel": isolation, **EARLIEST}
    streams = [reader(tmp_path, **options), reader(tmp_path, maxOffsetsPerTrigger="50", **options)]
    starts: list[Any] = [stream.initialOffset() for stream in streams]
    found: list[list[int]] = [[], []]

    def read() -> None:
        for number, stream in enumerate(streams):
            end = stream.latestOffset(starts[number], stream.getDefaultReadLimit())
            found[number] += stream_offsets(stream, starts[number], end)
            starts[number] = end

    while_written(writer.write, read)
    while starts[1] != streams[1].latestOffset(starts[1], ReadAllAvailable()):
        read()
    expected = (
        sorted(writer.committed)
        if isolation == "read_committed"
        else offsets(tmp_path, isolationLevel=isolation)
    )
    assert found == [expected, expected]
    writer.log.close()
