"""Starts from what should not be: broken offsets, partitions found twice, no directory at all."""

from pathlib import Path

import pytest

from storage.append_info import AppendOrigin
from storage.errors import LogDirectoryError
from storage.faulty_files import Fault, FaultyFiles
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.records.builder import ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import set_base_offset
from tests.unit.storage.support import (
    NOW,
    ManualClock,
    append_values,
    make_batch,
    open_log,
    read_values,
)


def test_an_offset_that_broke_ends_the_log_before_it(tmp_path: Path) -> None:
    """It does not fit the index, but the segment is not a wide one: smaller offsets follow."""
    log = open_log(tmp_path)
    append_values(log, b"a", b"b", b"c")
    segment = Path(log.segments.active.path())
    data = bytearray(segment.read_bytes())
    set_base_offset(data, 1 << 50, len(make_batch(b"a")))
    segment.write_bytes(data)
    reopened = open_log(tmp_path)
    reopened.update_high_watermark(99)
    assert read_values(reopened) == [(0, b"a")]
    assert reopened.end_offset == 1


def test_the_transaction_index_is_cut_only_after_it_was_rebuilt(tmp_path: Path) -> None:
    """On a full disk, others would be quicker to take the blocks of an emptied file."""
    log = open_log(tmp_path)
    for producer in (7, 8):
        info = ProducerInfo(producer, 0, 0, is_transactional=True)
        log.append_as_leader(make_batch(b"value", producer=info), 0)
        marker = build_end_txn_batch(NOW, producer, 0, EndTxnMarker(ControlType.ABORT, 0))
        log.append_as_leader(marker, 0, AppendOrigin.COORDINATOR)
    aborted = log.aborted_transactions(0, 4)
    assert len(aborted) == 2
    index = log.directory / f"{0:020d}.txnindex"
    size = index.stat().st_size
    index.write_bytes(index.read_bytes() + b"torn")
    files = FaultyFiles()
    reopened = open_log(tmp_path, files=files)
    assert reopened.aborted_transactions(0, 4) == aborted
    assert index.stat().st_size == size
    changes = [call for call, path in files.calls if path == str(index) and call != "open"]
    assert changes == ["pwrite", "pwrite", "truncate"]


def test_a_clean_stop_waits_until_the_snapshot_is_on_the_disk(tmp_path: Path) -> None:
    """The next start takes a log without snapshots for one without producers."""
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    log.append_as_leader(make_batch(b"value", producer=ProducerInfo(7, 0, 0)), 0)
    log.close()
    snapshot = str(log.directory / f"{1:020d}.snapshot")
    synced = [path for call, path in files.calls if call == "sync"]
    assert synced[synced.index(snapshot) :][:2] == [snapshot, str(log.directory)]
    files.calls.clear()
    open_log(tmp_path, files=files, clean=True).close()
    assert "sync" not in {call for call, _ in files.calls}


def test_a_clean_stop_syncs_the_snapshot_that_recovery_has_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(make_batch(b"value", producer=ProducerInfo(7, 0, 0)), 0)
    log.release_files()
    files = FaultyFiles()
    recovered = open_log(tmp_path, files=files)
    snapshot = str(log.directory / f"{1:020d}.snapshot")
    assert Path(snapshot).exists()
    assert ("sync", snapshot) not in files.calls
    recovered.close()
    assert ("sync", snapshot) in files.calls


def test_a_clean_stop_waits_until_the_ends_of_indexes_are_on_the_disk(tmp_path: Path) -> None:
    """The last entry of a time index comes when its segment is rolled or closed."""
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    append_values(log, b"rolled")
    log.flush()
    log.roll()
    append_values(log, b"closed")
    log.flush()
    log.close()
    for base_offset in (0, 1):
        path = str(log.directory / f"{base_offset:020d}.timeindex")
        calls = [call for call, called in files.calls if called == path]
        assert "sync" in calls[len(calls) - calls[::-1].index("truncate") :], base_offset


def test_a_preallocated_segment_loses_its_zeros_although_it_was_flushed(tmp_path: Path) -> None:
    """The power went after the flush and the roll, before the cut was on the disk."""
    config = LogConfig(segment_bytes=1000, preallocate=True)
    log = open_log(tmp_path, config)
    append_values(log, b"a", b"b")
    log.flush()
    log.roll()
    append_values(log, b"c")
    rolled = Path(log.segments.first.path())
    size = rolled.stat().st_size
    rolled.write_bytes(rolled.read_bytes() + bytes(1000 - size))
    reopened = open_log(tmp_path, config, recovery_point=2)
    assert rolled.stat().st_size == size
    reopened.update_high_watermark(3)
    assert read_values(reopened) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_the_cut_of_a_preallocated_segment_is_flushed_with_the_next_one(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(preallocate=True), files=files)
    append_values(log, b"a")
    log.flush()
    log.roll()
    append_values(log, b"b")
    files.calls.clear()
    log.flush()
    assert ("sync", log.segments.first.path()) in files.calls


def test_no_partition_is_created_without_a_directory(tmp_path: Path) -> None:
    files = FaultyFiles()
    logs = LogManager([tmp_path], LogConfig(), ManualClock(), files)
    files.faults.append(Fault("make_directory"))
    for partition in range(2):
        with pytest.raises(LogDirectoryError) as caught:
            logs.get_or_create("t", partition)
        assert caught.value.directory == tmp_path


def test_an_empty_log_that_a_failing_directory_left_gives_way(tmp_path: Path) -> None:
    files = FaultyFiles()
    paths = [tmp_path / "bad", tmp_path / "good"]
    logs = LogManager(paths, LogConfig(), ManualClock(), files)
    files.faults.append(Fault("open", path_contains="/bad/t-0/00000000000000000000.index"))
    append_values(logs.get_or_create("t", 0), b"value")
    logs.close()
    assert (tmp_path / "bad" / "t-0").exists()
    reopened = LogManager(paths, LogConfig(), ManualClock())
    reopened.load()
    log = reopened.get("t", 0)
    assert log is not None
    assert read_values(log) == [(0, b"value")]
    assert not (tmp_path / "bad" / "t-0").exists()
    reopened.close()
