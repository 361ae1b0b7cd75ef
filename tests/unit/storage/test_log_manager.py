"""All logs of a broker: where they lie, how they start, move, go and stop."""

from pathlib import Path

import pytest

from storage.errors import DirectoryLockedError, LogDirectoryError, MalformedDirectoryError
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_manager import LoadProgress, LogManager
from storage.log_moves import copy_some
from tests.unit.storage.support import ManualClock, append_values, make_batch, read_values


def manager(*directories: Path, clock: ManualClock | None = None) -> LogManager:
    return LogManager(directories, LogConfig(), clock or ManualClock())


def existing(logs: LogManager, topic: str, partition: int) -> Log:
    log = logs.get(topic, partition)
    assert log is not None
    return log


# Start and stop


def test_partitions_survive_a_clean_stop(tmp_path: Path) -> None:
    first = manager(tmp_path)
    first.load()
    append_values(first.get_or_create("events", 0), b"a", b"b")
    first.get_or_create("events", 1)
    first.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    checkpoint = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert checkpoint == "0\n2\nevents 0 2\nevents 1 0\n"

    second = manager(tmp_path)
    second.load()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    log = existing(second, "events", 0)
    assert log.high_watermark == 2
    assert read_values(log) == [(0, b"a"), (1, b"b")]
    second.close()


def test_after_a_crash_only_segments_from_the_recovery_point_on_are_read(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=200)
    crashed = LogManager([tmp_path], config, ManualClock())
    log = crashed.get_or_create("t", 0)
    append_values(log, *[b"value"] * 10)
    crashed.flush_due()
    crashed.checkpoint_recovery_points()
    crashed.checkpoint_high_watermarks()
    assert log.recovery_point == log.segments.active.base_offset
    first, active = log.segments.first, log.segments.active
    damaged = bytearray(Path(first.path()).read_bytes())
    damaged[-1] ^= 1
    Path(first.path()).write_bytes(damaged)
    torn = Path(active.path())
    torn.write_bytes(torn.read_bytes()[:-1])
    crashed.directories.close()
    (tmp_path / ".kafka_cleanshutdown").unlink()

    reopened = LogManager([tmp_path], config, ManualClock())
    reopened.load()
    assert existing(reopened, "t", 0).end_offset == 9
    assert existing(reopened, "t", 0).start_offset == 0
    reopened.close()


def test_loading_in_threads_reports_its_progress(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    first = manager(*directories)
    for partition in range(10):
        append_values(first.get_or_create("t", partition), b"value")
    first.close()
    seen: list[LoadProgress] = []
    second = LogManager(directories, LogConfig(), ManualClock(), threads_per_directory=4)
    second.load({"t": LogConfig(retention_ms=5)}, seen.append)
    assert [progress.loaded for progress in seen] == list(range(1, 11))
    assert {progress.total for progress in seen} == {10}
    assert sorted(log.partition for log in second.all_logs()) == list(range(10))
    assert existing(second, "t", 3).config.retention_ms == 5
    second.close()


def test_broken_checkpoints_cost_time_but_no_data(tmp_path: Path) -> None:
    first = manager(tmp_path)
    append_values(first.get_or_create("t", 0), b"a", b"b")
    first.close()
    for path in tmp_path.glob("*-checkpoint"):
        path.write_bytes(b"\xff\xfe garbage")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    second = manager(tmp_path)
    second.load()
    log = existing(second, "t", 0)
    log.update_high_watermark(log.end_offset)
    assert read_values(log) == [(0, b"a"), (1, b"b")]
    second.close()


def test_log_start_offset_survives_a_restart(tmp_path: Path) -> None:
    first = manager(tmp_path)
    log = first.get_or_create("t", 0)
    append_values(log, *[b"value"] * 5)
    log.advance_start_offset(3)
    first.get_or_create("t", 1)
    first.close()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
    second = manager(tmp_path)
    second.load()
    assert existing(second, "t", 0).start_offset == 3
    second.close()


def test_directories_that_are_no_partitions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    logs = manager(tmp_path)
    with pytest.raises(MalformedDirectoryError, match=r"lost\+found"):
        logs.load()
    logs.directories.close()


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        single = manager(tmp_path / name)
        append_values(single.get_or_create("t", 0), b"value")
        single.close()
    logs = manager(tmp_path / "one", tmp_path / "two")
    with pytest.raises(MalformedDirectoryError, match="both"):
        logs.load()
    logs.directories.close()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    first = manager(tmp_path)
    with pytest.raises(DirectoryLockedError):
        manager(tmp_path)
    first.close()
    manager(tmp_path).close()


def test_a_directory_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedDirectoryError, match="twice"):
        manager(tmp_path / "one", tmp_path / "." / "one")


# Placing and moving


def test_partitions_go_to_the_emptiest_directory(tmp_path: Path) -> None:
    logs = manager(tmp_path / "one", tmp_path / "two")
    parents = [logs.get_or_create("t", number).directory.parent.name for number in range(4)]
    assert sorted(parents) == ["one", "one", "two", "two"]
    logs.close()


def test_a_preferred_directory_is_taken_once(tmp_path: Path) -> None:
    logs = manager(tmp_path / "one", tmp_path / "two")
    logs.prefer_directory("t", 0, tmp_path / "two")
    logs.prefer_directory("t", 1, tmp_path / "two")
    assert logs.get_or_create("t", 0).directory.parent.name == "two"
    assert logs.get_or_create("t", 1).directory.parent.name == "two"
    with pytest.raises(LogDirectoryError):
        logs.prefer_directory("t", 2, tmp_path / "three")
    logs.close()


def test_a_partition_moves_to_another_directory(tmp_path: Path) -> None:
    clock = ManualClock()
    logs = manager(tmp_path / "one", tmp_path / "two", clock=clock)
    logs.prefer_directory("t", 0, tmp_path / "one")
    current = logs.get_or_create("t", 0)
    append_values(current, *[b"value"] * 5)
    current.advance_start_offset(2)
    future = logs.create_future("t", 0, tmp_path / "two")
    assert future.directory.name.endswith("-future")
    assert future.is_future
    while not copy_some(current, future, max_bytes=100):
        pass
    current.append_as_leader(make_batch(b"late"), 0)
    assert copy_some(current, future)

    moved = logs.replace_with_future("t", 0)
    assert existing(logs, "t", 0) is moved
    assert logs.get_future("t", 0) is None
    assert moved.directory == tmp_path / "two" / "t-0"
    assert (moved.start_offset, moved.end_offset, moved.high_watermark) == (2, 6, 5)
    assert append_values(moved, b"more") == [6]
    assert [offset for offset, _ in read_values(moved)] == [2, 3, 4, 5, 6]
    assert [path.name.endswith("-delete") for path in (tmp_path / "one").glob("t-0*")] == [True]
    clock.advance(60_000)
    logs.remove_deleted()
    assert not list((tmp_path / "one").glob("t-0*"))
    logs.close()


def test_an_unfinished_move_is_found_again_after_a_restart(tmp_path: Path) -> None:
    first = manager(tmp_path / "one", tmp_path / "two")
    first.prefer_directory("t", 0, tmp_path / "one")
    current = first.get_or_create("t", 0)
    append_values(current, b"a", b"b")
    copy_some(current, first.create_future("t", 0, tmp_path / "two"))
    first.close()
    second = manager(tmp_path / "one", tmp_path / "two")
    second.load()
    future = second.get_future("t", 0)
    assert future is not None
    assert future.end_offset == 2
    assert existing(second, "t", 0).directory.parent.name == "one"
    second.delete_future("t", 0)
    assert second.get_future("t", 0) is None
    second.close()


# Deleting and cutting


def test_deleted_partitions_are_renamed_and_go_after_the_delay(tmp_path: Path) -> None:
    clock = ManualClock()
    logs = manager(tmp_path, clock=clock)
    append_values(logs.get_or_create("t", 0), b"old")
    logs.delete("t", 0)
    assert logs.get("t", 0) is None
    (deleted,) = tmp_path.glob("t-0*")
    assert deleted.name.startswith("t-0.")
    assert deleted.name.endswith("-delete")
    assert logs.get_or_create("t", 0).end_offset == 0
    clock.advance(59_999)
    assert logs.remove_deleted() == 0
    clock.advance(1)
    assert logs.remove_deleted() == 1
    assert not deleted.exists()
    logs.delete("never", 9)
    logs.close()


def test_deletion_is_taken_up_again_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    first = manager(tmp_path, clock=clock)
    append_values(first.get_or_create("t" * 240, 0), b"old")
    first.delete("t" * 240, 0)
    first.close()
    second = manager(tmp_path, clock=clock)
    second.load()
    assert second.all_logs() == []
    clock.advance(60_000)
    second.remove_deleted()
    assert not list(tmp_path.glob("t*"))
    second.close()


def test_truncation_puts_the_lower_recovery_point_on_record(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.get_or_create("t", 0)
    append_values(log, *[b"value"] * 5)
    log.flush()
    logs.checkpoint_recovery_points()
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    assert "t 0 5" in checkpoint.read_text()
    logs.truncate({("t", 0): 2, ("unknown", 0): 0})
    assert "t 0 2" in checkpoint.read_text()
    logs.truncate_fully_and_start_at("t", 0, 70)
    assert "t 0 70" in checkpoint.read_text()
    logs.close()


# Periodic work


def test_cleanup_enforces_retention_except_where_compaction_is_at_work(tmp_path: Path) -> None:
    clock = ManualClock()
    config = LogConfig(segment_bytes=150, retention_ms=1000)
    logs = LogManager([tmp_path], config, clock)
    for partition in (0, 1):
        append_values(logs.get_or_create("t", partition), *[b"value"] * 5)
    clock.advance(5000)
    assert logs.cleanup(skipped={("t", 1)}) == 5
    assert existing(logs, "t", 0).start_offset == 5
    assert existing(logs, "t", 1).start_offset == 0
    logs.close()


def test_flush_due_flushes_by_time_and_after_a_roll(tmp_path: Path) -> None:
    clock = ManualClock()
    logs = LogManager([tmp_path], LogConfig(flush_ms=1000), clock)
    log = logs.get_or_create("t", 0)
    append_values(log, b"a")
    logs.flush_due()
    assert log.recovery_point == 0
    clock.advance(1000)
    logs.flush_due()
    assert log.recovery_point == 1
    append_values(log, b"b")
    log.roll()
    append_values(log, b"c")
    logs.flush_due()
    assert log.recovery_point == 2
    logs.close()


def test_few_descriptors_are_enough_for_many_partitions(tmp_path: Path) -> None:
    config = LogConfig(index_interval_bytes=1)
    logs = LogManager([tmp_path], config, ManualClock(), open_files_limit=8)
    for round_number in range(4):
        for partition in range(20):
            log = logs.get_or_create("t", partition)
            assert append_values(log, b"value") == [round_number]
            assert len(logs.environment.open_files) <= 10
    for partition in range(20):
        assert len(read_values(existing(logs, "t", partition))) == 4
    logs.close()
    assert len(logs.environment.open_files) == 0
