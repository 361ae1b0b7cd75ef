"""Files and folders that are not what their names say, or lead nowhere. Each is told once, and
nothing that could keep the audit waiting is opened."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from analytics.audit.audit import audit_here
from analytics.audit.faults import Kind
from analytics.logs.partitions import find_partitions
from storage.checkpoint import RECOVERY_POINT_CHECKPOINT
from tests.unit.analytics.audit.copies import CHECKPOINTS, RELEASES, Copy, faults_in, told

METADATA = "partition.metadata"


@pytest.fixture
def plain(tmp_path: Path) -> Copy:
    return Copy(tmp_path, "sent-none-0")


@pytest.fixture
def later(tmp_path: Path) -> Copy:
    """Of a release whose partitions know their topic's id."""
    return Copy(tmp_path, "sent-none-0", RELEASES[1])


def bind_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


MAKE_NO_FILE = [os.mkfifo, bind_socket]


@pytest.mark.parametrize(
    "name", ["sent-none-0-20261118200432", "sent-none-9999999999", os.fsdecode(b"s\xffnt-0")]
)
def test_a_copy_of_a_partition_under_a_name_of_its_own_is_foreign(plain: Copy, name: str) -> None:
    shutil.copytree(plain.partition, plain.log_dir / name)
    [fault] = plain.faults()
    assert fault.kind == Kind.FOREIGN_FILE
    assert fault.file.encode()
    assert fault.file.isprintable()


def test_a_file_whose_name_is_no_text_is_foreign(plain: Copy) -> None:
    (plain.partition / os.fsdecode(b"00\xfe.log")).touch()
    assert told(plain.faults()) == [(r"00\xfe.log", None, Kind.FOREIGN_FILE)]


@pytest.mark.parametrize("make", MAKE_NO_FILE)
@pytest.mark.parametrize("offset", [12, 999_999])
def test_what_is_no_file_is_foreign_whatever_its_name(
    plain: Copy, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], offset: int
) -> None:
    monkeypatch.chdir(plain.partition)  # a socket's path must be short
    make(Path(f"{offset:020d}.log"))
    assert told(plain.faults()) == [(f"{offset:020d}.log", None, Kind.FOREIGN_FILE)]


@pytest.mark.timeout(30)
def test_pipes_in_the_place_of_files_are_told_once_and_not_opened(plain: Copy) -> None:
    places = [
        plain.files(".index")[0],
        plain.files(".snapshot")[0],
        plain.log_dir / RECOVERY_POINT_CHECKPOINT,
        plain.log_dir / "meta.properties",
    ]
    for file in places:
        file.unlink(missing_ok=True)
        os.mkfifo(file)
    names = sorted((name, kind) for name, _, kind in told(plain.faults()))
    assert names == sorted((file.name, Kind.FOREIGN_FILE) for file in places)


@pytest.mark.timeout(30)
def test_a_partition_of_pipes_is_told_by_them(plain: Copy) -> None:
    piped = Copy(plain.log_dir, "sent-zstd-0")
    for file in piped.partition.iterdir():
        file.unlink()
    pipe = piped.partition / f"{0:020d}.log"
    os.mkfifo(pipe)
    assert told(plain.faults()) == [(pipe.name, None, Kind.FOREIGN_FILE)]


@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_segment_that_is_a_link_to_nothing_is_told_once(plain: Copy, number: int) -> None:
    file = plain.files(".log")[number]
    file.unlink()
    file.symlink_to("/nowhere/else")
    [fault] = plain.faults()
    assert told([fault]) == [(file.name, None, Kind.MISSING_FILE)]
    assert "/nowhere/else" in fault.detail


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [(".index", Kind.MISSING_FILE), (".timeindex", Kind.MISSING_FILE)],
)
def test_an_index_that_is_a_link_to_nothing_is_told_once(
    plain: Copy, suffix: str, kind: Kind
) -> None:
    file = plain.files(suffix)[0]
    file.unlink()
    file.symlink_to("gone")
    assert told(plain.faults()) == [(file.name, None, kind)]


def test_a_partition_that_is_a_link_to_nothing_is_told(plain: Copy) -> None:
    (plain.log_dir / "far-0").symlink_to("/mnt/unplugged/far-0")
    assert told(plain.faults()) == [("far-0", None, Kind.MISSING_FILE)]


def test_a_partition_all_of_whose_segments_lead_nowhere_is_told_by_them(plain: Copy) -> None:
    far = Copy(plain.log_dir, "sent-zstd-0")
    logs = far.files(".log")
    for file in logs:
        file.unlink()
        file.symlink_to("gone")
    assert told(plain.faults()) == [(file.name, None, Kind.MISSING_FILE) for file in logs]


def test_links_that_lead_somewhere_are_no_faults(plain: Copy) -> None:
    elsewhere = plain.log_dir.parent / f"{plain.log_dir.name}-elsewhere"
    elsewhere.mkdir()
    moved = shutil.move(plain.files(".log")[0], elsewhere)
    (plain.partition / Path(moved).name).symlink_to(moved)
    assert plain.faults() == []
    moved = shutil.move(plain.partition, elsewhere)
    plain.partition.symlink_to(moved)
    assert plain.faults() == []


@pytest.mark.parametrize("has_checkpoints", [True, False])
def test_a_partition_of_indexes_alone_is_told_once(plain: Copy, has_checkpoints: bool) -> None:
    bare = Copy(plain.log_dir, "sent-zstd-0")
    for file in bare.files(".log"):
        file.unlink()
    if not has_checkpoints:
        for name in CHECKPOINTS:
            (plain.log_dir / name).unlink()
    assert told(plain.faults()) == [(bare.partition.name, None, Kind.LOST)]


@pytest.mark.parametrize("suffix", ["delete", "future"])
def test_a_partition_on_its_way_out_or_in_may_have_lost_its_segments(
    plain: Copy, suffix: str
) -> None:
    leaving = plain.log_dir / f"gone-0.{0:032x}-{suffix}"
    leaving.mkdir()
    (leaving / f"{0:020d}.index").touch()
    assert plain.faults() == []


def test_an_emptied_partition_of_a_topic_that_was_not_chosen_is_not_told(plain: Copy) -> None:
    other = Copy(plain.log_dir, "sent-zstd-0").partition
    for file in other.iterdir():
        file.unlink()
    Copy(plain.log_dir, "sent-gzip-0")
    chosen = [log for log in find_partitions(plain.log_dir) if log.topic == "sent-none"]
    assert audit_here(chosen) == []
    assert told(plain.faults()) == [(other.name, None, Kind.LOST)]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: bytes(len(data)),
        lambda data: data.replace(b"version: 0", b"version: 1"),
        lambda data: data[:20] + b"+" + data[21:],
        lambda data: data + b"more",
        lambda data: data.replace(b"topic", b"tOpic"),
    ],
)
def test_damaged_metadata_of_a_partition_is_told(
    later: Copy, change: Callable[[bytes], bytes]
) -> None:
    file = later.partition / METADATA
    file.write_bytes(change(file.read_bytes()))
    assert told(later.faults()) == [(METADATA, None, Kind.DAMAGED_FILE)]


def test_metadata_of_a_partition_may_end_its_lines_as_any_release_does(later: Copy) -> None:
    file = later.partition / METADATA
    text = file.read_bytes()
    file.write_bytes(text + b"\n")
    assert later.faults() == []
    file.write_bytes(text.replace(b"\n", b"\r\n") + b"\r\n")
    assert faults_in(later.log_dir) == []
