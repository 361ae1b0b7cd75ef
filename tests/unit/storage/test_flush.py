"""Flushing, also in a thread while the log is written, cut, renamed or deleted."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import sleep

import pytest

from storage.errors import LogDirectoryError
from storage.faulty_files import FaultyFiles
from storage.files import AnyPath, Descriptor, Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.retention import enforce_retention
from tests.unit.storage.support import ManualClock, append_values, open_log

BARELY_A_MOMENT = 0.2
SMALL = LogConfig(segment_bytes=300, index_interval_bytes=50)
# A flush of `unflushed_log` opens and syncs at least as many files.
FLUSH_CALLS = range(1, 30)


def test_flush_by_count_brings_files_to_the_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(flush_messages=3), files=files)
    append_values(log, b"a", b"b")
    assert not any(call == "sync" for call, _ in files.calls)
    assert log.recovery_point == 0
    append_values(log, b"c")
    synced = {Path(path).name for call, path in files.calls if call == "sync"}
    base = "00000000000000000000"
    assert synced >= {f"{base}.log", f"{base}.index", f"{base}.timeindex", "topic-0"}
    assert "leader-epoch-checkpoint" in synced
    assert log.recovery_point == 3


def test_flush_covers_only_what_is_not_on_the_disk_yet(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, SMALL, files=files)
    append_values(log, *[b"value"] * 8)
    log.flush(log.segments.active.base_offset)
    assert log.recovery_point == log.segments.active.base_offset
    assert not log.has_unflushed_segments
    files.calls.clear()
    log.flush()
    synced = {Path(path).name for call, path in files.calls if call == "sync" and "0.log" in path}
    assert len([name for name in synced if name.endswith(".log")]) <= 1
    assert log.unflushed_records == 0


def test_flush_in_a_thread_while_the_log_changes(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    with ThreadPoolExecutor(1) as pool:
        for round_number in range(30):
            flushing = pool.submit(log.flush)
            append_values(log, *[b"value"] * 5)
            if round_number % 7 == 3:
                log.truncate_to(log.end_offset - 3)
            if round_number % 10 == 9:
                log.advance_start_offset(log.high_watermark - 4)
                enforce_retention(log)
            flushing.result()
    log.flush()
    assert log.recovery_point == log.end_offset


class InterruptedFiles(Files):
    """Calls something before the nth file that is opened or synced from then on."""

    def __init__(self) -> None:
        self._countdown = 0
        self._interruption: Callable[[], object] | None = None

    def interrupt(self, nth: int, interruption: Callable[[], object]) -> None:
        self._countdown, self._interruption = nth, interruption

    @property
    def was_interrupted(self) -> bool:
        return self._interruption is None

    def open(self, path: AnyPath, flags: int) -> Descriptor:
        self._count()
        return super().open(path, flags)

    def sync(self, file: Descriptor) -> None:
        self._count()
        super().sync(file)

    def _count(self) -> None:
        self._countdown -= 1
        if self._countdown == 0 and self._interruption is not None:
            interruption, self._interruption = self._interruption, None
            interruption()


def test_a_truncation_during_a_flush_keeps_the_recovery_point_low(tmp_path: Path) -> None:
    files = InterruptedFiles()
    log = open_log(tmp_path, files=files)
    append_values(log, b"a", b"b", b"c")

    def rewrite() -> None:
        log.truncate_to(1)
        append_values(log, b"d", b"e")

    files.interrupt(1, rewrite)
    log.flush()
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 3


def test_a_flush_survives_the_removal_of_its_segments(tmp_path: Path) -> None:
    files = InterruptedFiles()
    log = open_log(tmp_path, SMALL, files=files)
    append_values(log, *[b"value"] * 10)
    files.interrupt(1, lambda: log.truncate_fully_and_start_at(100))
    log.flush()
    assert log.recovery_point == 100


def unflushed_log(tmp_path: Path, files: Files) -> Log:
    """A log of several segments whose files are all to be opened for a flush."""
    log = open_log(tmp_path, SMALL, files=files)
    append_values(log, *[b"value"] * 10)
    log.release_files()
    return log


@pytest.mark.parametrize("nth", FLUSH_CALLS)
def test_a_flush_follows_its_directory_to_another_name(tmp_path: Path, nth: int) -> None:
    files = InterruptedFiles()
    log = unflushed_log(tmp_path, files)
    files.interrupt(nth, lambda: log.rename_directory("topic-0.moved"))
    log.flush()
    assert files.was_interrupted
    assert log.recovery_point == log.end_offset == 10


class SlowRename(InterruptedFiles):
    """A rename that is seen by all before the one who asked for it learns of it."""

    def __init__(self) -> None:
        super().__init__()
        self.was_renamed = Event()

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        super().replace(source, target)
        if Path(target).is_dir():
            self.was_renamed.set()
            sleep(BARELY_A_MOMENT)


@pytest.mark.parametrize("nth", [1, 6, 20])
def test_a_flush_waits_for_a_rename_that_another_thread_is_at(tmp_path: Path, nth: int) -> None:
    files = SlowRename()
    log = unflushed_log(tmp_path, files)
    with ThreadPoolExecutor(1) as pool:

        def rename() -> None:
            pool.submit(log.rename_directory, "topic-0.moved")
            assert files.was_renamed.wait(10)

        files.interrupt(nth, rename)
        log.flush()
    assert files.was_interrupted
    assert log.recovery_point == log.end_offset == 10


@pytest.mark.parametrize("nth", FLUSH_CALLS)
def test_a_flush_lets_go_of_a_log_that_is_deleted(tmp_path: Path, nth: int) -> None:
    files = InterruptedFiles()
    clock = ManualClock()
    logs = LogManager([tmp_path], SMALL, clock, files)
    log = logs.get_or_create("topic", 0)
    append_values(log, *[b"value"] * 10)
    log.release_files()

    def delete() -> None:
        logs.delete("topic", 0)
        clock.advance(SMALL.file_delete_delay_ms)
        assert logs.environment.deferred_deletes.run(files, clock()) > 0

    files.interrupt(nth, delete)
    log.flush()
    assert files.was_interrupted
    assert logs.offline_directories == []
    assert not log.directory.exists()
    logs.close()


def test_a_flush_fails_where_a_file_is_gone(tmp_path: Path) -> None:
    log = unflushed_log(tmp_path, Files())
    (log.directory / "00000000000000000000.log").unlink()
    with pytest.raises(LogDirectoryError, match=r"00000000000000000000\.log"):
        log.flush()
    assert log.recovery_point == 0
