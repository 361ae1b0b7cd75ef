"""The filesystem seam, descriptors, deferred deletions and names."""

import gc
import os
from pathlib import Path

import pytest

from storage.deferred_deletes import DeferredDeletes
from storage.errors import MalformedDirectoryError
from storage.faulty_files import Fault, FaultyFiles
from storage.files import EMPTY_SLICE, Files, FileSlice
from storage.log_config import LogConfig
from storage.open_files import OpenFiles
from storage.segment_files import (
    deleted_directory,
    future_directory,
    parse_directory_name,
    parse_file_name,
    segment_path,
)


def test_descriptor_closes_with_its_last_reference(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    descriptor = Files().open(path, os.O_RDONLY)
    number = descriptor.fileno()
    part = FileSlice(descriptor, 2, 5)
    del descriptor
    path.unlink()
    assert (part.read(), len(part)) == (b"23456", 5)
    del part
    gc.collect()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)


def test_read_past_the_end_gives_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    descriptor = Files().open(path, os.O_RDONLY)
    assert descriptor.read(100, 7) == b"789"
    assert descriptor.read(100, 10) == b""
    assert EMPTY_SLICE.read() == b""


def test_short_reads_are_completed(tmp_path: Path) -> None:
    class SlowFiles(Files):
        def pread(self, file: object, length: int, position: int) -> bytes:
            return b"0123456789"[position : position + min(length, 3)]

    (tmp_path / "file").touch()
    assert SlowFiles().open(tmp_path / "file", os.O_RDONLY).read(8, 1) == b"12345678"


def test_faults_strike_where_and_when_they_are_told(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.faults.append(Fault("unlink", path_contains="b", skip=1, times=1))
    for name in ("a", "b1", "b2", "b3"):
        (tmp_path / name).touch()
    assert files.unlink(tmp_path / "a")
    assert files.unlink(tmp_path / "b1")
    with pytest.raises(OSError, match="Input/output"):
        files.unlink(tmp_path / "b2")
    assert files.unlink(tmp_path / "b3")
    assert not files.unlink(tmp_path / "b3")


class Holder:
    """Holds nothing, but says whether it was asked to let go."""

    def __init__(self) -> None:
        self.recently_used = False
        self.is_released = False

    def release(self) -> None:
        self.is_released = True


def test_holders_that_were_not_used_lately_are_released_first() -> None:
    open_files = OpenFiles(limit=3)
    used, unused, third, fourth, fifth = (Holder() for _ in range(5))
    for holder in (used, unused, third):
        open_files.opened(holder)
    used.recently_used = True
    open_files.opened(fourth)
    assert unused.is_released
    assert not used.is_released
    assert len(open_files) == 3
    open_files.opened(fifth)
    assert third.is_released
    assert not used.is_released, "its second chance is spent only now"
    open_files.closed(used)
    assert len(open_files) == 2


def test_more_holders_than_allowed_may_be_in_use_for_a_moment() -> None:
    open_files = OpenFiles(limit=1)
    first, second = Holder(), Holder()
    first.recently_used = True
    open_files.opened(first)
    open_files.opened(second)
    assert (first.is_released, second.is_released) == (False, False)
    third = Holder()
    open_files.opened(third)
    assert (first.is_released, second.is_released, third.is_released) == (True, True, False)


def test_deferred_deletes_follow_renamed_directories(tmp_path: Path) -> None:
    deletes = DeferredDeletes()
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    for name in ("a", "b"):
        (old / name).touch()
        deletes.add(str(old / name), due_ms=10)
    old.rename(new)
    deletes.moved(str(old), str(new))
    assert deletes.run(Files(), now_ms=9) == 0
    assert deletes.run(Files(), now_ms=10) == 2
    assert list(new.iterdir()) == []


def test_deleting_a_directory_forgets_what_waited_in_it(tmp_path: Path) -> None:
    deletes = DeferredDeletes()
    directory = tmp_path / "gone"
    directory.mkdir()
    (directory / "file").touch()
    deletes.add(str(directory / "file"), due_ms=10)
    deletes.add(str(tmp_path / "other"), due_ms=10)
    deletes.add_directory(str(directory), due_ms=5)
    assert len(deletes) == 2
    assert deletes.run(Files(), now_ms=5) == 1
    assert not directory.exists()


def test_what_cannot_be_removed_is_left_to_the_next_start(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.faults.append(Fault("unlink"))
    deletes = DeferredDeletes()
    (tmp_path / "file").touch()
    deletes.add(str(tmp_path / "file"), due_ms=0)
    assert deletes.run(files, now_ms=0) == 0
    assert len(deletes) == 0


def test_names_of_segment_files() -> None:
    path = segment_path("/d/t-0", 42, "timeindex", ".swap")
    assert path == "/d/t-0/00000000000000000042.timeindex.swap"
    assert parse_file_name(Path(path).name) == (42, "timeindex", ".swap")
    assert parse_file_name("leader-epoch-checkpoint") is None
    assert parse_file_name(f"{2**63 - 1}.log") == (2**63 - 1, "log", "")
    assert parse_file_name(f"{2**63}.log") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("events-0", ("events", 0, "")),
        ("a-b.c_d-17", ("a-b.c_d", 17, "")),
        ("events-3.0123abc-delete", ("events", 3, "-delete")),
        ("events-3.0123abc-future", ("events", 3, "-future")),
        ("x-delete-1", ("x-delete", 1, "")),
        ("events-2147483647", ("events", 2147483647, "")),
    ],
)
def test_names_of_partition_directories(name: str, expected: tuple[str, int, str]) -> None:
    assert parse_directory_name(Path("/d") / name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "events",
        "-1",
        "events-",
        "events-x",
        "events-delete",
        "a-²",
        "events-0-20261118200432",
        "events-2147483648",
        "events-2147483648.0123abc-delete",
        os.fsdecode(b"ev\xffents-0"),
    ],
)
def test_names_that_no_partition_has(name: str) -> None:
    with pytest.raises(MalformedDirectoryError) as raised:
        parse_directory_name(Path("/d") / name)
    assert str(raised.value).isprintable()


def test_made_names_can_be_parsed_and_are_short_enough() -> None:
    long_topic = "t" * 249
    assert len(deleted_directory(long_topic, 12345)) <= 255
    assert parse_directory_name(Path(deleted_directory("t", 1)))[:2] == ("t", 1)
    assert parse_directory_name(Path(future_directory("t", 1))) == ("t", 1, "-future")


@pytest.mark.parametrize(
    ("version", "magic"),
    [("0.8.2", 0), ("0.9.0", 0), ("0.10.0-IV0", 1), ("0.10.2", 1), ("0.11.0", 2), ("2.5-IV0", 2)],
)
def test_message_format_versions_name_a_magic(version: str, magic: int) -> None:
    assert LogConfig(message_format_version=version).record_magic == magic


def test_compacted_logs_roll_in_time_for_compaction() -> None:
    compacted = LogConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=5)
    assert compacted.roll_ms == 5
    assert LogConfig(max_compaction_lag_ms=5).roll_ms == LogConfig().segment_ms
