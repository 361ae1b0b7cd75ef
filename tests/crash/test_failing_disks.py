"""I/O errors and a full disk at every system call: what was acknowledged stays."""

import errno
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from storage.errors import NoLogDirectoryLeftError
from storage.log_manager import LogManager
from tests.crash.damage import Template, reopened
from tests.crash.failing import FailingFiles, Failure, write_on
from tests.crash.inspection import check_logs
from tests.crash.killing import close_what_crashed, crash
from tests.crash.model import Model
from tests.crash.workload import CONFIG, CONFIGS, NOW, log_directories

NEVER = 1 << 30
KINDS = {
    "one error": Failure(0, errno.EIO, lasts=False),
    "only errors": Failure(0, errno.EIO),
    "full disk": Failure(0, errno.ENOSPC, bytes_left=0),
    "disk with little space": Failure(0, errno.ENOSPC, bytes_left=150),
}


def soak_step() -> int:
    return 25 if os.environ.get("BARNABAS_SOAK") == "short" else 1


def failure_at(kind: str, call: int) -> Failure:
    pattern = KINDS[kind]
    return Failure(call, pattern.number, pattern.lasts, pattern.bytes_left)


def calls_of(tmp_path: Path, kind: str) -> int:
    files = FailingFiles(failure_at(kind, NEVER))
    write_on(tmp_path / "counted", files, stops=True)
    return files.counted


def check_what_is_left(root: Path, model: Model, kind: str, call: int) -> None:
    print(f"{kind} at call {call}")
    course = write_on(root, FailingFiles(failure_at(kind, call)), stops=call % 2 == 0)
    model.acknowledge(course.journal)
    for _ in range(2):
        check_logs(reopened(root), model, course.unresolved, Random(call))
    shutil.rmtree(root)
    close_what_crashed()


@pytest.mark.parametrize("kind", KINDS)
def test_acknowledged_records_survive_failing_disks(tmp_path: Path, kind: str) -> None:
    total = calls_of(tmp_path, kind)
    assert total > 100
    for call in range(1, total, total // 12):
        check_what_is_left(tmp_path / str(call), Model(), kind, call)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_acknowledged_records_survive_a_failure_at_any_call(tmp_path: Path, kind: str) -> None:
    for call in range(1, calls_of(tmp_path, kind), soak_step()):
        check_what_is_left(tmp_path / str(call), Model(), kind, call)


def load(root: Path, files: FailingFiles) -> bool:
    """Load logs; whether the failing disk can still be used."""
    try:
        logs = LogManager(log_directories(root), CONFIG, lambda: NOW, files)
    except NoLogDirectoryLeftError:
        return False
    logs.load(CONFIGS)
    crash(logs)
    return not logs.offline_directories


def fail_while_loading(template: Template, root: Path, state: str, failure: Failure) -> bool:
    """Load logs on a failing disk, then on a sound one; whether the failing one was of use."""
    print(f"{failure} while loading")
    template.copy(state, root)
    is_loaded = load(root, FailingFiles(failure))
    model = Model([list(batches) for batches in template.model.batches])
    check_logs(reopened(root), model, [], Random(failure.call))
    shutil.rmtree(root)
    close_what_crashed()
    return is_loaded


@pytest.mark.parametrize("state", ["crashed", "flushed", "stopped"])
def test_logs_can_be_read_from_a_full_disk(template: Template, tmp_path: Path, state: str) -> None:
    assert fail_while_loading(template, tmp_path / "logs", state, failure_at("full disk", 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["crashed", "stopped"])
def test_logs_survive_disks_that_fail_while_they_are_loaded(
    template: Template, tmp_path: Path, state: str, kind: str
) -> None:
    step = loading_calls(template, tmp_path, state, kind) // 4
    for call in range(1, 4 * step + 1, step):
        fail_while_loading(template, tmp_path / "logs", state, failure_at(kind, call))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["crashed", "stopped"])
def test_logs_survive_a_failure_at_any_call_while_they_are_loaded(
    template: Template, tmp_path: Path, state: str, kind: str
) -> None:
    for call in range(1, loading_calls(template, tmp_path, state, kind), soak_step()):
        fail_while_loading(template, tmp_path / "logs", state, failure_at(kind, call))


def loading_calls(template: Template, tmp_path: Path, state: str, kind: str) -> int:
    files = FailingFiles(failure_at(kind, NEVER))
    assert load(template.copy(state, tmp_path / "counted"), files)
    return files.counted
