"""What may be written where: refused before any work, and written as it was asked."""

import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from analytics.errors import AnalysisError
from analytics.staging import replace_file, staged_folder
from analytics.targets import check_targets


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log directory in it, and the current one."""
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(out: str | None = None, report: str | None = None, spark_log: str | None = None) -> None:
    def named(target: str | None) -> Path | None:
        return None if target is None else Path(target)

    check_targets(named(out), named(report), named(spark_log), ["logs"])


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize("kind", ["new", "far/below", "empty", "link to empty", "link to new"])
def test_tables_go_to_a_new_or_an_empty_folder_whatever_leads_there(here: Path, kind: str) -> None:
    (here / "empty").mkdir()
    (here / "link to empty").symlink_to("empty")
    (here / "link to new").symlink_to("fresh")
    check(out=kind)
    with staged_folder(Path(kind)) as folder:
        assert folder is not None
        (folder / "topics").mkdir()
        (folder / "topics" / "part").write_text("rows")
    assert names(here / kind) == ["topics"]
    assert (here / kind / "topics" / "part").read_text() == "rows"
    assert (here / kind).is_symlink() == kind.startswith("link")
    assert not [name for name in names(here) if name.endswith(".part")]


def test_an_empty_folder_stays_the_one_that_it_is(here: Path) -> None:
    folder = here / "mounted"
    folder.mkdir()
    identity = folder.stat().st_ino
    with staged_folder(folder) as staging:
        assert staging is not None
        (staging / "topics").mkdir()
    assert folder.stat().st_ino == identity


@pytest.mark.parametrize("exists", [True, False])
def test_tables_that_fail_leave_nothing(here: Path, exists: bool) -> None:
    if exists:
        (here / "tables").mkdir()
    before = names(here)

    def fill_half() -> None:
        with staged_folder(here / "tables") as folder:
            assert folder is not None
            (folder / "topics").mkdir()
            raise ValueError("half done")

    with pytest.raises(ValueError, match="half"):
        fill_half()
    assert names(here) == before
    assert not exists or names(here / "tables") == []


def test_a_folder_that_was_filled_meanwhile_is_named_as_the_user_did(here: Path) -> None:
    (here / "tables").mkdir()

    def fill() -> None:
        with staged_folder(Path("tables")) as folder:
            assert folder is not None
            for name in ("lags", "topics"):
                (folder / name).mkdir()
            (here / "tables" / "topics").mkdir()

    with pytest.raises(OSError, match="topics") as raised:
        fill()
    assert raised.value.filename == "tables"
    assert names(here / "tables") == ["topics"]


def test_a_report_replaces_what_a_link_leads_to_and_keeps_the_link(here: Path) -> None:
    (here / "real.html").write_text("old")
    (here / "link.html").symlink_to("real.html")
    check(report="link.html")
    replace_file(Path("link.html"), "new")
    assert (here / "link.html").is_symlink()
    assert (here / "real.html").read_text() == "new"


def test_a_report_is_written_into_a_pipe_that_stays_one(here: Path) -> None:
    os.mkfifo(here / "pipe")
    check(report="pipe")
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append((here / "pipe").read_text()))
    reader.start()
    replace_file(Path("pipe"), "report")
    reader.join(10)
    assert heard == ["report"]
    assert (here / "pipe").is_fifo()


def test_a_report_to_a_device_leaves_the_device(here: Path) -> None:
    (here / "nothing").symlink_to(os.devnull)
    check(report="nothing", spark_log=os.devnull)
    replace_file(Path("nothing"), "report")
    assert Path(os.devnull).is_char_device()
    assert (here / "nothing").is_symlink()


@pytest.mark.parametrize(
    ("targets", "line"),
    [
        ({"out": "full"}, "--out: full: is there already and not an empty directory"),
        ({"out": "file"}, "--out: file: is there already and not an empty directory"),
        ({"out": "file/x"}, "--out: file/x: {here}/file is not a directory"),
        ({"out": "loop"}, "--out: loop: Too many levels of symbolic links"),
        ({"report": "full"}, "--report: full: is a directory; name a file"),
        ({"report": "none/r.html"}, "--report: none/r.html: there is no such directory"),
        ({"report": "astray"}, "--report: astray: there is no such directory"),
        ({"report": "socket"}, "--report: socket: is no file; name one"),
        ({"spark_log": "file/x"}, "--spark-log: file/x: there is no such directory"),
        (
            {"out": "x", "report": "./x"},
            "--out: x: cannot be there beside --report: x",
        ),
        (
            {"out": "x/y", "report": "x"},
            "--out: x/y: cannot be there beside --report: x",
        ),
        (
            {"report": "file", "spark_log": "link to file"},
            "--report: file: cannot be there beside --spark-log: link to file",
        ),
        (
            {"out": "logs/tables"},
            "--out: logs/tables: lies in the log directory {here}/logs, which is a broker's;"
            " name another place",
        ),
        (
            {"report": "link to logs/r.html"},
            "--report: link to logs/r.html: lies in the log directory {here}/logs, which is a"
            " broker's; name another place",
        ),
        (
            {"spark_log": "logs/t-0/spark.log"},
            "--spark-log: logs/t-0/spark.log: lies in the log directory {here}/logs, which is a"
            " broker's; name another place",
        ),
    ],
)
def test_what_cannot_or_should_not_be_written_is_one_line(
    here: Path, targets: dict[str, str], line: str
) -> None:
    (here / "full").mkdir()
    (here / "full" / "of").mkdir()
    (here / "file").touch()
    (here / "loop").symlink_to("loop")
    (here / "astray").symlink_to("none/r.html")
    (here / "link to file").symlink_to("file")
    (here / "link to logs").symlink_to("logs")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    with pytest.raises(AnalysisError) as raised:
        check(**targets)
    assert str(raised.value) == line.format(here=here)


def test_a_report_may_lie_in_the_empty_folder_that_tables_go_to(here: Path) -> None:
    (here / "both").mkdir()
    check(out="both", report="both/r.html")
    shutil.rmtree(here / "both")


def test_a_file_that_takes_standard_output_is_refused(here: Path) -> None:
    saved = os.dup(1)
    try:
        with (here / "r.html").open("w") as file:
            os.dup2(file.fileno(), 1)
            with pytest.raises(AnalysisError, match="is where standard output goes"):
                check(report="r.html")
    finally:
        os.dup2(saved, 1)
        os.close(saved)
