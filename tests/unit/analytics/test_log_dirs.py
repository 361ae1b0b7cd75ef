import os
from pathlib import Path

import pytest

from analytics.errors import AnalysisError
from analytics.logs.partitions import find_all, find_partitions
from tests.support.permissions import needs_permissions, told_to_others
from tests.unit.analytics.segments import batch, write_segment


def names(directory: Path) -> list[str]:
    return [f"{log.topic}/{log.partition}" for log in find_partitions(directory)]


def test_partitions_and_segments_of_a_log_directory_are_found_in_order(tmp_path: Path) -> None:
    write_segment(tmp_path, "orders-10", 0)
    write_segment(tmp_path, "orders-2", 7, [batch(7, 1)])
    write_segment(tmp_path, "orders-2", 0, [batch(0, 7)])
    assert names(tmp_path) == ["orders/2", "orders/10"]
    log = find_partitions(tmp_path)[0]
    assert [segment.base_offset for segment in log.segments] == [0, 7]
    assert log.size == len(batch(0, 7)) + len(batch(7, 1))
    assert log.log_dir == str(tmp_path)


def test_log_directories_below_are_found(tmp_path: Path) -> None:
    write_segment(tmp_path / "one", "t-0", 0)
    write_segment(tmp_path / "cluster" / "two", "t-0", 0)
    found = [log.log_dir for log in find_partitions(tmp_path)]
    assert found == [str(tmp_path / "cluster" / "two"), str(tmp_path / "one")]


def test_a_partitions_own_directory_may_be_named(tmp_path: Path) -> None:
    write_segment(tmp_path, "with-dash-3", 0)
    write_segment(tmp_path, "other-0", 0)
    assert names(tmp_path / "with-dash-3") == ["with-dash/3"]


def test_what_is_no_log_is_passed_over(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0)
    (tmp_path / "meta.properties").write_text("version=0")
    (tmp_path / "notes-1").mkdir()
    (tmp_path / "version-2").mkdir()
    (tmp_path / "version-2" / "log.1").touch()
    write_segment(tmp_path, "gone-0.0123456789abcdef0123456789abcdef-delete", 0)
    write_segment(tmp_path, "moved-0.0123456789abcdef0123456789abcdef-future", 0)
    for foreign in (
        "00000000000000000000.index",
        "00000000000000000009.log.deleted",
        "00000000000000000009.log.cleaned",
        "readme.log",
        "leader-epoch-checkpoint",
    ):
        (tmp_path / "t-0" / foreign).touch()
    (tmp_path / "t-0" / "00000000000000000005.log").mkdir()
    assert names(tmp_path) == ["t/0"]
    assert len(find_partitions(tmp_path)[0].segments) == 1


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (None, "there is no such directory; name a log directory"),
        ("file", "is not a directory; name a log directory"),
        ("directory", "holds no logs; name a directory with partitions in it"),
    ],
)
def test_a_path_without_logs_is_told_in_one_line(
    make: str | None, why: str, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    if make == "file":
        target.touch()
    if make == "directory":
        target.mkdir()
    with pytest.raises(AnalysisError) as caught:
        find_partitions(target)
    assert str(caught.value).startswith(f"{target}: {why}")
    assert "\n" not in str(caught.value)


def test_a_place_may_get_logs_later_but_one_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert find_all([missing], may_be_empty=True) == []
    with pytest.raises(AnalysisError, match="there is no such directory"):
        find_all([missing])
    for name in ("nowhere://logs", __file__):
        with pytest.raises(AnalysisError, match=r"cannot be read|is not a directory"):
            find_all([missing, name], may_be_empty=True)


@pytest.mark.parametrize("mode", [0, 0o444])
@pytest.mark.parametrize("named", [".", "two", "two/t-1"])
@needs_permissions
def test_a_directory_that_is_closed_to_us_is_an_error_and_not_empty(
    tmp_path: Path, mode: int, named: str
) -> None:
    write_segment(tmp_path / "one", "t-0", 0, [batch(0, 5)])
    write_segment(tmp_path / "two", "t-1", 0, [batch(0, 5)])
    (tmp_path / "two").chmod(mode)
    script = f"""
from analytics.logs.partitions import find_all
print(find_all([{str(tmp_path / named)!r}], may_be_empty=True))"""
    told = told_to_others(script)
    (tmp_path / "two").chmod(0o755)
    assert told.startswith(f"analytics.errors.AnalysisError: {tmp_path}/two")
    assert told.endswith("cannot be read: Permission denied")


@needs_permissions
def test_a_disks_own_folders_and_links_that_lead_nowhere_hide_nothing(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 5)])
    write_segment(tmp_path / ".snapshot" / "daily", "t-0", 0, [batch(0, 3)])
    (tmp_path / "lost+found").mkdir(mode=0)
    os.symlink("itself", tmp_path / "itself")
    os.symlink("nowhere", tmp_path / "dangling")
    script = f"""
from analytics.logs.partitions import find_partitions
print([log.topic for log in find_partitions({str(tmp_path)!r})])"""
    assert told_to_others(script) == "['t']"


def test_a_local_directory_may_be_named_as_hadoop_names_it(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 5)])
    for spelling in (f"file:{tmp_path}", f"file://{tmp_path}"):
        (log,) = find_all([spelling])
        assert log.directory == str(tmp_path / "t-0")
