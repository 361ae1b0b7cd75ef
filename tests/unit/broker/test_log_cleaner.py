"""The broker's cleaner with real worker processes."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from broker import log_cleaner
from broker.log_cleaner import LogCleaner
from storage.checkpoint import CLEANER_CHECKPOINT, read_offsets
from storage.compaction.settings import CleanerSettings
from storage.files import Files
from storage.log import Log
from storage.log_manager import LogManager
from storage.segment_files import CLEANED_SUFFIX
from tests.unit.storage.compaction.support import COMPACTED, append_segments, file_names, pairs_of

SETTINGS = CleanerSettings(dedupe_buffer_size=1024 * 1024, io_buffer_size=1, backoff_ms=20)
# A worker with these is met at work: it takes minutes for what `make_large` writes.
SLOW_SETTINGS = replace(SETTINGS, io_max_bytes_per_second=10.0)
OLD = [(b"key", b"old"), (b"other", b"kept")]
NEW = [(b"key", b"new")]
LEFT = [(1, b"other", b"kept"), (2, b"key", b"new")]
PATIENCE_SECONDS = 60.0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def make_manager(directory: Path) -> LogManager:
    config = replace(COMPACTED, min_cleanable_dirty_ratio=0.01)
    manager = LogManager([directory], config, now_ms)
    manager.load()
    return manager


def make_dirty(manager: LogManager, topic: str) -> Log:
    log = manager.get_or_create(topic, 0)
    append_segments(log, OLD, NEW)
    return log


def make_large(manager: LogManager, topic: str) -> Log:
    """A log that is longer than what a worker reads at a time."""
    log = manager.get_or_create(topic, 0)
    append_segments(log, *([(b"key", b"%900d" % number)] for number in range(20)))
    return log


async def at_work(cleaner: LogCleaner, log: Log, *known: int) -> int:
    """The id of the process that cleans the log, another one than those that are known."""
    await eventually(
        lambda: (
            log in cleaner.candidates.in_progress and cleaner.workers[0].pid not in (None, *known)
        )
    )
    pid = cleaner.workers[0].pid
    assert pid is not None
    return pid


async def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        await asyncio.sleep(0.005)


def with_cleaner(
    manager: LogManager,
    scenario: Callable[[LogCleaner], Awaitable[None]],
    settings: CleanerSettings = SETTINGS,
) -> None:
    """Run a scenario beside a cleaner that works."""

    async def run() -> None:
        cleaner = LogCleaner(manager, settings)
        cleaner.start()
        try:
            await scenario(cleaner)
        finally:
            await cleaner.stop()
        assert all(worker.pid is None for worker in cleaner.workers)

    try:
        asyncio.run(run())
    finally:
        manager.close()


def test_dirty_logs_are_compacted_and_their_offsets_are_on_record(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    logs = [make_dirty(manager, topic) for topic in ("one", "two")]

    async def scenario(cleaner: LogCleaner) -> None:
        await eventually(lambda: cleaned_on_disk(tmp_path) == {("one", 0): 3, ("two", 0): 3})
        assert [pairs_of(log) for log in logs] == [LEFT, LEFT]
        assert cleaner.last_summary.records_written == 2

    with_cleaner(manager, scenario)


def test_several_workers_clean_several_logs(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    logs = [make_dirty(manager, f"topic-{number}") for number in range(5)]

    async def scenario(cleaner: LogCleaner) -> None:
        await eventually(lambda: all(log.cleaned_offset == 3 for log in logs))
        assert [pairs_of(log) for log in logs] == [LEFT] * 5

    with_cleaner(manager, scenario, replace(SETTINGS, threads=2))


def test_no_worker_is_started_while_there_is_nothing_to_compact(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    manager.get_or_create("clean", 0)

    async def scenario(cleaner: LogCleaner) -> None:
        log = manager.get_or_create("later", 0)
        await asyncio.sleep(5 * SETTINGS.backoff_ms / 1000)
        assert cleaner.workers[0].pid is None
        append_segments(log, OLD, NEW)
        await eventually(lambda: log.cleaned_offset == 3)
        assert cleaner.workers[0].pid is not None

    with_cleaner(manager, scenario)


def test_an_idle_worker_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_cleaner, "IDLE_WORKER_SECONDS", 0.0)
    manager = make_manager(tmp_path)
    log = make_dirty(manager, "topic")

    async def scenario(cleaner: LogCleaner) -> None:
        await eventually(lambda: log.cleaned_offset == 3)
        await eventually(lambda: cleaner.workers[0].pid is None)
        append_segments(log, NEW)
        await eventually(lambda: log.cleaned_offset == 4)

    with_cleaner(manager, scenario)


def test_a_damaged_log_is_left_alone_and_others_are_compacted(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    damaged = make_dirty(manager, "damaged")
    sound = make_dirty(manager, "sound")
    path = Path(damaged.segments.first.path())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    async def scenario(cleaner: LogCleaner) -> None:
        await eventually(lambda: sound.cleaned_offset == 3)
        await eventually(lambda: damaged in cleaner.candidates.uncleanable)
        assert damaged.cleaned_offset is None
        assert len(damaged.segments) == 3
        assert not any(name.endswith(CLEANED_SUFFIX) for name in file_names(damaged))

    with_cleaner(manager, scenario)


def test_a_killed_worker_costs_a_new_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.compaction.selection._FIRST_PAUSE_MS", 1)
    manager = make_manager(tmp_path)
    log = make_large(manager, "topic")

    async def scenario(cleaner: LogCleaner) -> None:
        killed: list[int] = []
        for _ in range(2):
            killed.append(await at_work(cleaner, log, *killed))
            os.kill(killed[-1], signal.SIGKILL)
        cleaner.settings = SETTINGS
        await at_work(cleaner, log, *killed)
        await eventually(lambda: log.cleaned_offset == 20)
        assert [offset for offset, _, _ in pairs_of(log)] == [19]

    with_cleaner(manager, scenario, SLOW_SETTINGS)


def test_a_log_that_is_cut_meanwhile_is_left_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_cleaner, "STALENESS_CHECK_SECONDS", 0.01)
    manager = make_manager(tmp_path)
    log = make_large(manager, "topic")

    async def scenario(cleaner: LogCleaner) -> None:
        await at_work(cleaner, log)
        manager.truncate({("topic", 0): 5})
        await eventually(lambda: log not in cleaner.candidates.in_progress)
        assert [offset for offset, _, _ in pairs_of(log)] == [0, 1, 2, 3, 4]
        assert log.cleaned_offset is None

    with_cleaner(manager, scenario, SLOW_SETTINGS)


def test_a_log_may_be_deleted_while_it_is_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_cleaner, "STALENESS_CHECK_SECONDS", 0.01)
    manager = make_manager(tmp_path)
    deleted = make_large(manager, "topic")

    async def scenario(cleaner: LogCleaner) -> None:
        await at_work(cleaner, deleted)
        manager.delete("topic", 0)
        await eventually(lambda: deleted not in cleaner.candidates.in_progress)
        log = make_dirty(manager, "topic")
        cleaner.settings = SETTINGS
        await eventually(lambda: log.cleaned_offset == 3)
        assert manager.live_directories == [tmp_path]

    with_cleaner(manager, scenario, SLOW_SETTINGS)


def test_retention_spares_the_log_that_is_cleaned(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    log = make_large(manager, "topic")
    log.update_config(replace(log.config, cleanup_policy=frozenset({"compact", "delete"})))
    log.update_config(replace(log.config, retention_bytes=0))

    async def scenario(cleaner: LogCleaner) -> None:
        await at_work(cleaner, log)
        assert manager.cleanup(skipped=cleaner.in_progress) == 0
        assert manager.cleanup() > 0

    with_cleaner(manager, scenario, SLOW_SETTINGS)


def test_a_stop_leaves_no_trace_of_what_was_under_way(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    log = make_large(manager, "topic")
    before = pairs_of(log)

    async def scenario(cleaner: LogCleaner) -> None:
        await at_work(cleaner, log)

    with_cleaner(manager, scenario, SLOW_SETTINGS)
    assert pairs_of(log) == before
    assert not any(name.endswith(CLEANED_SUFFIX) for name in file_names(log))


def cleaned_on_disk(directory: Path) -> dict[tuple[str, int], int]:
    return read_offsets(Files(), directory / CLEANER_CHECKPOINT)
