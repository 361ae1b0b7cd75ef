from pathlib import Path

import pytest

from analytics.errors import AnalysisError
from analytics.logs.partitions import find_all, find_partitions
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
