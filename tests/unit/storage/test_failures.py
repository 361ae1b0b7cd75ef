"""Disks that fail or are full: what was acknowledged stays, the rest of the broker goes on."""

import errno
from pathlib import Path

import pytest

from storage.errors import LogDirectoryError, NoLogDirectoryLeftError
from storage.faulty_files import Fault, FaultyFiles
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from tests.unit.storage.support import (
    ManualClock,
    append_values,
    make_batch,
    open_log,
    read_values,
)


@pytest.mark.parametrize("space", [0, 1, 50, 200])
def test_full_disk_in_the_middle_of_an_append_leaves_whole_batches(
    tmp_path: Path, space: int
) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    append_values(log, b"a", b"b")
    size = log.segments.active.size
    files.space_left = space
    with pytest.raises(LogDirectoryError) as caught:
        log.append_as_leader(make_batch(b"x" * 300), 0)
    assert caught.value.directory == tmp_path
    assert isinstance(caught.value.__cause__, OSError)
    path = log.directory / "00000000000000000000.log"
    assert path.stat().st_size == size
    assert log.end_offset == 2
    assert read_values(log) == [(0, b"a"), (1, b"b")]
    assert append_values(open_log(tmp_path), b"c") == [2]


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_an_append_whose_index_entry_does_not_fit_is_taken_back(tmp_path: Path, kind: str) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(index_interval_bytes=1), files=files)
    append_values(log, b"a")
    files.faults.append(Fault("pwrite", errno.ENOSPC, path_contains=kind))
    with pytest.raises(LogDirectoryError):
        log.append_as_leader(make_batch(b"b"), 0)
    assert log.end_offset == 1
    assert read_values(log) == [(0, b"a")]
    files.faults.clear()
    assert append_values(log, b"c") == [1]
    assert read_values(log) == [(0, b"a"), (1, b"c")]


@pytest.mark.parametrize("is_index_lost", [False, True])
def test_recovery_needs_no_disk_space(tmp_path: Path, is_index_lost: bool) -> None:
    config = LogConfig(segment_bytes=1000, index_interval_bytes=100)
    log = open_log(tmp_path, config)
    append_values(log, *[b"value"] * 30)
    torn = Path(log.segments.active.path())
    torn.write_bytes(torn.read_bytes()[:-3])
    for lost in ("*.snapshot", "leader-epoch-checkpoint", "*index" if is_index_lost else "none"):
        for path in log.directory.glob(lost):
            path.unlink()
    files = FaultyFiles()
    files.space_left = 0
    reopened = open_log(tmp_path, config, files=files)
    reopened.update_high_watermark(99)
    assert [offset for offset, _ in read_values(reopened)] == list(range(29))
    assert reopened.epochs.entries == [(0, 0)]


def broken_manager(tmp_path: Path) -> tuple[LogManager, FaultyFiles, list[Path]]:
    files = FaultyFiles()
    failed: list[Path] = []
    logs = LogManager(
        [tmp_path / "good", tmp_path / "bad"],
        LogConfig(),
        ManualClock(),
        files,
        on_directory_failure=lambda path, error: failed.append(path),
    )
    for partition in range(4):
        append_values(logs.get_or_create("t", partition), b"value")
    return logs, files, failed


def test_a_failing_directory_takes_only_its_partitions_offline(tmp_path: Path) -> None:
    logs, files, failed = broken_manager(tmp_path)
    bad = [log for log in logs.all_logs() if log.directory.parent.name == "bad"]
    files.faults.append(Fault("pwrite", path_contains="/bad/"))
    with pytest.raises(LogDirectoryError):
        append_values(bad[0], b"lost")
    assert failed == [tmp_path / "bad"]
    assert logs.live_directories == [tmp_path / "good"]
    assert logs.offline_directories == [tmp_path / "bad"]
    for log in bad:
        with pytest.raises(LogDirectoryError):
            logs.get(log.topic, log.partition)
        with pytest.raises(LogDirectoryError):
            logs.get_or_create(log.topic, log.partition, is_new=False)
        with pytest.raises(LogDirectoryError):
            log.read(0, 100)
        with pytest.raises(LogDirectoryError):
            log.append_as_leader(make_batch(), 0)
        with pytest.raises(LogDirectoryError):
            log.flush()
    for log in logs.all_logs():
        assert append_values(log, b"more") == [1]
    assert logs.get_or_create("new", 0).directory.parent.name == "good"
    with pytest.raises(LogDirectoryError):
        logs.get_or_create("old", 0, is_new=False)
    logs.close()
    assert (tmp_path / "good" / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / "bad" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("work", ["flush_due", "checkpoint_recovery_points", "close"])
def test_errors_in_periodic_work_take_the_directory_offline(tmp_path: Path, work: str) -> None:
    logs, files, failed = broken_manager(tmp_path)
    for log in logs.all_logs():
        log.roll()
    files.faults.append(Fault("sync", path_contains="/bad/"))
    getattr(logs, work)()
    assert failed == [tmp_path / "bad"]
    if work != "close":
        logs.close()


def test_a_directory_that_fails_while_loading_is_left_out(tmp_path: Path) -> None:
    logs, _, _ = broken_manager(tmp_path)
    logs.close()
    files = FaultyFiles()
    files.faults.append(Fault("open", path_contains="/bad/t-"))
    reopened = LogManager([tmp_path / "good", tmp_path / "bad"], LogConfig(), ManualClock(), files)
    reopened.load()
    assert reopened.offline_directories == [tmp_path / "bad"]
    assert len(reopened.all_logs()) == 2
    reopened.close()


def test_a_directory_that_cannot_be_made_is_offline_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    logs = LogManager([tmp_path / "file" / "below", tmp_path / "good"], LogConfig(), ManualClock())
    assert logs.live_directories == [tmp_path / "good"]
    logs.close()
    with pytest.raises(NoLogDirectoryLeftError, match="below"):
        LogManager([tmp_path / "file" / "below"], LogConfig(), ManualClock())


def test_a_new_partition_goes_to_the_next_directory_if_the_first_fails(tmp_path: Path) -> None:
    files = FaultyFiles()
    logs = LogManager([tmp_path / "bad", tmp_path / "good"], LogConfig(), ManualClock(), files)
    files.faults.append(Fault("make_directory", path_contains="/bad/"))
    assert logs.get_or_create("t", 0).directory.parent.name == "good"
    assert logs.offline_directories == [tmp_path / "bad"]
    logs.close()


@pytest.mark.parametrize("work", ["checkpoint_recovery_points", "close"])
def test_snapshots_that_cannot_be_removed_take_the_directory_offline(
    tmp_path: Path, work: str
) -> None:
    logs, files, failed = broken_manager(tmp_path)
    for _ in range(3):
        for log in logs.all_logs():
            append_values(log, b"more")
            log.roll()
    logs.flush_due()
    files.faults.append(Fault("unlink", path_contains="/bad/"))
    getattr(logs, work)()
    assert failed == [tmp_path / "bad"]
    if work != "close":
        logs.close()
    assert (tmp_path / "good" / ".kafka_cleanshutdown").exists()
