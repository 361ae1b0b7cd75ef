"""Partitions that are deleted and made anew: what was on record of the old ones is not theirs."""

from pathlib import Path

import pytest

from storage.checkpoint import CLEANER_CHECKPOINT, read_offsets
from storage.faulty_files import Fault, FaultyFiles
from storage.files import Files
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from tests.unit.storage.support import ManualClock, append_values, read_values

LARGE = [b"%d" % number for number in range(20)]


def open_manager(directory: Path, files: Files | None = None) -> LogManager:
    manager = LogManager([directory], LogConfig(), ManualClock(), files)
    manager.load()
    return manager


def crash(manager: LogManager) -> None:
    for directory in manager.directories:
        directory.unlock()


def write_and_checkpoint(manager: LogManager) -> None:
    """A partition with something on record in each checkpoint."""
    log = manager.get_or_create("topic", 0)
    append_values(log, *LARGE)
    log.flush()
    log.advance_start_offset(10)
    log.cleaned_offset = 12
    manager.checkpoint_recovery_points()
    manager.checkpoint_start_offsets()
    manager.checkpoint_high_watermarks()
    manager.checkpoint_cleaned_offsets()


@pytest.mark.parametrize("crashes_between", [False, True])
def test_a_partition_made_anew_survives_a_crash(tmp_path: Path, crashes_between: bool) -> None:
    manager = open_manager(tmp_path)
    write_and_checkpoint(manager)
    manager.delete("topic", 0)
    if crashes_between:
        crash(manager)
        manager = open_manager(tmp_path)
    append_values(manager.get_or_create("topic", 0), b"new", b"newer")
    crash(manager)
    log = open_manager(tmp_path).get("topic", 0)
    assert log is not None
    assert (log.start_offset, log.end_offset, log.high_watermark) == (0, 2, 0)
    assert log.recovery_point == 0
    assert log.cleaned_offset is None
    log.update_high_watermark(log.end_offset)
    assert read_values(log) == [(0, b"new"), (1, b"newer")]


def test_a_new_partition_costs_no_checkpoint(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = open_manager(tmp_path, files)
    write_and_checkpoint(manager)
    manager.delete("topic", 0)
    files.calls.clear()
    manager.get_or_create("other", 0)
    assert not [path for _, path in files.calls if "offset-checkpoint" in path]
    manager.get_or_create("topic", 0)
    assert [path for _, path in files.calls if "offset-checkpoint" in path]


def test_a_partition_made_anew_where_checkpoints_fail_goes_elsewhere(tmp_path: Path) -> None:
    files = FaultyFiles()
    paths = [tmp_path / "bad", tmp_path / "good"]
    manager = LogManager(paths, LogConfig(), ManualClock(), files)
    manager.load()
    manager.prefer_directory("topic", 0, tmp_path / "bad")
    write_and_checkpoint(manager)
    manager.delete("topic", 0)
    files.faults.append(Fault("replace", path_contains="bad/recovery-point"))
    log = manager.get_or_create("topic", 0)
    assert log.directory.parent == tmp_path / "good"
    assert manager.offline_directories == [tmp_path / "bad"]


@pytest.mark.parametrize("offset", [5, None])
def test_a_truncation_puts_the_lower_cleaned_offset_on_record(
    tmp_path: Path, offset: int | None
) -> None:
    """After a crash, what was written anew must not count as compacted."""
    manager = open_manager(tmp_path)
    log = manager.get_or_create("topic", 0)
    append_values(log, *LARGE)
    log.cleaned_offset = 12
    manager.checkpoint_cleaned_offsets()
    if offset is None:
        manager.truncate_fully_and_start_at("topic", 0, 7)
    else:
        manager.truncate({("topic", 0): offset})
    left = 7 if offset is None else 0  # where the segment begins that is left
    assert log.cleaned_offset == left
    assert read_offsets(Files(), tmp_path / CLEANER_CHECKPOINT) == {("topic", 0): left}
