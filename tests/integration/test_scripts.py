"""The scripts on a fresh machine: a project that is nothing but them and a tiny package, so that
what is tested is the setting up, without a network.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "barnabas"
version = "1"
"""

# The smallest build backend that pip installs from: a path file, a command, no dependencies.
# It writes down each build, and can be told to wait until it is killed.
BACKEND = """\
import pathlib, sys, time, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    here = pathlib.Path.cwd()
    with open(here / "builds.txt", "a") as builds:
        print("built", file=builds)
    if (here / "hang").exists():
        time.sleep(600)
    name = "barnabas-1-py3-none-any.whl"
    info = "barnabas-1.dist-info"
    files = {
        "barnabas.pth": str(here),
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: barnabas\\nVersion: 1\\n"
            "Provides-Extra: test\\nProvides-Extra: dev\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{info}/entry_points.txt": "[console_scripts]\\nbarnabas = program:main\\n",
    }
    record = "".join(f"{name},,\\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)
    return name

build_wheel = build_editable
"""

PROGRAM = """\
import os, signal, sys

def main():
    print(os.getpid(), os.environ["BARNABAS_HOME"], os.getcwd(), sys.argv[1:], flush=True)
    if "wait" in sys.argv:
        signal.pause()
"""


def make_project(root: Path) -> Path:
    root.mkdir()
    shutil.copytree(PROJECT / "scripts", root / "scripts")
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    (root / "program.py").write_text(PROGRAM)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that nobody has set up yet."""
    return make_project(tmp_path / "a project")


@pytest.fixture(scope="module")
def ready_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that two first runs, started at once, have set up."""
    project = make_project(tmp_path_factory.mktemp("ready") / "a project")
    racing = [
        subprocess.Popen(
            [project / "scripts" / "setup", "dev"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for _ in range(2)
    ]
    for process in racing:
        _, errors = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, errors
    return project


def environment(**changes: str) -> dict[str, str]:
    """The tests' own interpreter comes first, so that the project is set up with it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    interpreter = Path(os.path.realpath(sys.executable)).parent
    return {**kept, "PATH": f"{interpreter}:{kept['PATH']}", "PIP_NO_INDEX": "1", **changes}


def run(command: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd="/",
        env=environment(**changes),
    )


def builds(project: Path) -> int:
    return len((project / "builds.txt").read_text().splitlines())


def test_two_first_runs_at_once_set_up_once(ready_project: Path) -> None:
    assert builds(ready_project) == 1


def test_a_project_that_is_ready_is_run_and_not_set_up_again(ready_project: Path) -> None:
    finished = run(ready_project / "scripts" / "broker", "my file", "--override", "a=b c")
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    _, rest = finished.stdout.split(" ", 1)
    arguments = ["broker", "my file", "--override", "a=b c"]
    assert rest == f"{ready_project} / {arguments}\n"
    assert builds(ready_project) == 1


def test_setting_up_for_more_sets_up_for_less(ready_project: Path) -> None:
    for purpose in ("dev", "test", "broker"):
        assert run(ready_project / "scripts" / "setup", purpose).returncode == 0
    assert builds(ready_project) == 1


def test_a_purpose_that_is_none_is_refused(ready_project: Path) -> None:
    finished = run(ready_project / "scripts" / "setup", "dance")
    assert finished.returncode == 1
    assert finished.stderr == "dance: unknown purpose; use one of broker, test, dev\n"


def test_a_changed_pyproject_or_place_is_noticed(project: Path) -> None:
    assert run(project / "scripts" / "setup").returncode == 0
    with (project / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert run(project / "scripts" / "setup").returncode == 0
    assert builds(project) == 2
    moved = project.rename(project.with_name("moved"))
    finished = run(moved / "scripts" / "broker")
    assert f" {moved} " in finished.stdout, finished.stderr
    assert builds(moved) == 3


def test_a_setup_that_failed_or_was_cut_short_is_started_over(project: Path) -> None:
    (project / "backend.py").write_text(BACKEND.replace("return name", "raise SystemExit('no')"))
    finished = run(project / "scripts" / "broker")
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr.endswith("check the network and run again\n")

    (project / "backend.py").write_text(BACKEND)
    (project / "builds.txt").unlink()
    (project / "hang").touch()
    cut_short(project)
    (project / "hang").unlink()

    leftover = project / ".venv" / "leftover"
    leftover.touch()
    finished = run(project / "scripts" / "broker")
    assert finished.returncode == 0, finished.stderr
    assert not leftover.exists()
    assert not (project / ".venv" / ".unfinished").exists()


def cut_short(project: Path) -> None:
    """Start a setup and kill it, children and all, in the middle of its installing."""
    setup = subprocess.Popen(
        [project / "scripts" / "setup"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )
    try:
        wait_for(project / "builds.txt", setup)
    finally:
        os.killpg(setup.pid, signal.SIGKILL)
        setup.wait(TIMEOUT_S)


def wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the file is there; the process that makes it must live on."""
    for _ in range(TIMEOUT_S * 10):
        if file.exists():
            return
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"it ended with {process.returncode} before {file} was there")
    raise AssertionError(f"{file} did not appear")


def test_signals_reach_the_program_itself(ready_project: Path) -> None:
    process = subprocess.Popen(
        [ready_project / "scripts" / "broker", "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"{process.pid} ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()


def test_the_script_may_be_called_through_a_link(ready_project: Path, tmp_path: Path) -> None:
    link = tmp_path / "barnabas-broker"
    link.symlink_to(ready_project / "scripts" / "broker")
    assert f" {ready_project} " in run(link).stdout


@pytest.mark.skipif(
    not (PROJECT / ".venv" / ".ready-broker").exists(), reason="run by scripts/test only"
)
def test_the_projects_own_broker_starts_stops_and_starts_again(tmp_path: Path) -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "logs")}
    overrides = [word for pair in settings.items() for word in ("--override", "=".join(pair))]
    for _ in range(2):
        process = subprocess.Popen(
            [PROJECT / "scripts" / "broker", *overrides],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
        )
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            assert any(line.endswith("started (broker.server)\n") for line in lines)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0
        finally:
            process.kill()
            process.communicate()
    assert (tmp_path / "logs" / "meta.properties").exists()


def make_python(directory: Path, body: str) -> Path:
    """A PATH with the usual tools and this `python3`, or with no Python if that is empty."""
    tools = directory / "tools"
    tools.mkdir()
    for name in ("sh", "readlink", "dirname", "cksum", "tr"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    if body:
        (tools / "python3").write_text(f"#!/bin/sh\n{body}\n")
        (tools / "python3").chmod(stat.S_IRWXU)
    return tools


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("", "Python 3.11 or later is needed, and no python3 is on the PATH"),
        (
            '[ "$1" = -V ] && echo Python 3.9.2; exit 1',
            "Python 3.11 or later with its venv module is needed, found: Python-3.9.2;",
        ),
    ],
)
def test_no_python_or_one_too_old_is_one_line(
    body: str, line: str, project: Path, tmp_path: Path
) -> None:
    finished = run(project / "scripts" / "broker", PATH=str(make_python(tmp_path, body)))
    assert finished.returncode == 1
    assert finished.stderr.startswith(line)
    assert finished.stderr.count("\n") == 1
