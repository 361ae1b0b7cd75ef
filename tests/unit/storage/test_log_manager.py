"""All logs of a broker: where they lie, how they start and stop."""

from pathlib import Path

import pytest

from storage.errors import DirectoryLockedError
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from tests.unit.storage.support import ManualClock, append_values, read_values


def manager(*directories: Path) -> LogManager:
    return LogManager(directories, LogConfig(), ManualClock())


def test_partitions_survive_a_clean_stop(tmp_path: Path) -> None:
    first = manager(tmp_path)
    first.load()
    append_values(first.get_or_create("events", 0), b"a", b"b")
    first.get_or_create("events", 1)
    first.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    checkpoint = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert checkpoint.splitlines()[:2] == ["0", "2"]
    assert "events 0 2" in checkpoint

    second = manager(tmp_path)
    second.load()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    log = second.get("events", 0)
    assert log is not None
    assert log.high_watermark == 2
    assert read_values(log) == [(0, b"a"), (1, b"b")]
    second.close()


def test_partitions_go_to_the_emptiest_directory(tmp_path: Path) -> None:
    logs = manager(tmp_path / "one", tmp_path / "two")
    parents = [logs.get_or_create("t", number).directory.parent.name for number in range(4)]
    assert sorted(parents) == ["one", "one", "two", "two"]
    logs.close()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    first = manager(tmp_path)
    with pytest.raises(DirectoryLockedError):
        manager(tmp_path)
    first.close()
    manager(tmp_path).close()
