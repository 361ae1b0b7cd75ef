"""The command as a whole: files that cannot be shown, files that must not change, any damage."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.broker.dump_log.support import OFFSET_INDEX, SEGMENT, TIME_INDEX, dump, write
from tests.unit.storage.support import make_batch

PROJECT = Path(__file__).resolve().parents[4]
KAFKAS_DATA = PROJECT / "tests" / "fixtures" / "kafka-2.5.1" / "data"
SHOWN_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def test_kafkas_list_of_files_and_files_as_arguments_are_shown_in_order(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n:020}.log") for n in range(4)]
    shown = dump("--files", f"{paths[0]},{paths[1]}", paths[2], paths[3])
    assert [line for line in shown.lines if line.startswith("Dumping")] == [
        f"Dumping {path}" for path in paths
    ]


def test_no_file_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as stopped:
        dump()
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    "name",
    [SEGMENT, OFFSET_INDEX, TIME_INDEX, SEGMENT[:-3] + "snapshot", SEGMENT[:-3] + "txnindex"],
)
def test_a_missing_file_costs_a_line_and_the_next_is_shown(tmp_path: Path, name: str) -> None:
    missing = tmp_path / "missing" / name
    present = write(tmp_path / SEGMENT, make_batch(b"x"))
    shown = dump(missing, present)
    assert shown.complaints == [f"{missing}: cannot be read: No such file or directory"]
    assert shown.lines[:2] == [f"Dumping {missing}", f"Dumping {present}"]
    assert shown.status == 1


@pytest.mark.parametrize("name", ["README", "x.txt", "00000000000000000000.log.deleted", "x.log "])
def test_an_unknown_file_is_ignored(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, b"x")
    shown = dump(path)
    assert shown.complaints == [f"Ignoring unknown file {path}"]
    assert shown.status == 1


def test_a_name_without_an_offset_costs_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x.log")
    assert dump(path).complaints == [f"{path}: its name does not begin with an offset"]


def test_a_directory_costs_a_line(tmp_path: Path) -> None:
    (tmp_path / SEGMENT).mkdir()
    shown = dump(tmp_path / SEGMENT)
    assert shown.complaints == [f"{tmp_path / SEGMENT}: cannot be read: Is a directory"]
    assert shown.status == 1


def test_a_reader_that_leaves_early_ends_the_dump_quietly(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, *[make_batch(b"x" * 100, base_offset=n) for n in range(5000)])
    command = [sys.executable, "-m", "broker", "dump-log", "--print-data-log", str(path)]
    with subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_costs_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, make_batch(b"x"))
    with open("/dev/full", "wb") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "broker", "dump-log", str(path), str(tmp_path / "missing.log")],
            cwd=PROJECT,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert finished.stderr == b"standard output: [Errno 28] No space left on device\n"
    assert finished.returncode == 1


def test_text_that_the_terminal_cannot_show_is_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / SEGMENT, make_batch("\u0436".encode()))
    finished = subprocess.run(
        [sys.executable, "-m", "broker", "dump-log", "--print-data-log", str(path)],
        cwd=PROJECT,
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert (finished.returncode, finished.stderr) == (0, b"")
    assert finished.stdout.endswith(b" payload: ?\n")


def test_no_file_is_changed_or_created(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(KAFKAS_DATA / "transactional-0", data)
    for index in list(data.glob("*.index"))[:1]:
        index.unlink()
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in data.iterdir()}
    for path in data.iterdir():
        path.chmod(0o400)
    files = sorted(path for path in data.iterdir() if path.suffix in SHOWN_SUFFIXES)
    for option in ("--print-data-log", "--verify-index-only", "--index-sanity-check"):
        assert dump(option, *files).status == 0
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in data.iterdir()} == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_damage_is_told_of_and_never_an_exception(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes are cut, flipped, zeroed and put in between in a random file of a random log."""
    topics = ("transactional-0", "v1-gzip-0", "sent-zstd-0", "__consumer_offsets-0", "upgraded-0")
    source = KAFKAS_DATA / data.draw(st.sampled_from(topics))
    files = sorted(path for path in source.iterdir() if path.suffix in SHOWN_SUFFIXES)
    victim = data.draw(st.sampled_from([path for path in files if path.stat().st_size]))
    content = bytearray(victim.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.sampled_from((0, 1, 4, 60)))
        content[at : at + length] = data.draw(st.binary(max_size=8) | st.just(bytes(100)))
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    (copy / victim.name).write_bytes(content)
    shown = dump(
        data.draw(st.sampled_from(("--print-data-log", "--offsets-decoder", "--deep-iteration"))),
        *(copy / path.name for path in files),
    )
    assert len([line for line in shown.lines if line.startswith("Dumping")]) == len(files)
