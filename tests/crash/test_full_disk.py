"""Disks that are really full, in a mount namespace that nobody else sees."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PATIENCE_SECONDS = 240
# $1 is the directory to mount on; what follows it is run there.
MOUNTS = {
    "tmpfs": 'mount -t tmpfs -o size=1m none "$1"',
    "ext4": (
        'truncate -s 2m "$1.image" && mkfs.ext4 -q -F -m 0 "$1.image"'
        ' && mount -o loop "$1.image" "$1"'
    ),
}


def in_small_file_system(kind: str, directory: Path, *command: str) -> list[str]:
    """A command that runs where a file system of about a megabyte is mounted."""
    script = f'{MOUNTS[kind]} && shift && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(directory), *command]


@pytest.mark.parametrize("kind", MOUNTS)
def test_acknowledged_records_survive_a_full_disk(tmp_path: Path, kind: str) -> None:
    directory = tmp_path / "small"
    directory.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare to make a mount namespace with")
    probe = subprocess.run(
        in_small_file_system(kind, directory, "true"), capture_output=True, text=True, timeout=60
    )
    if probe.returncode != 0:
        pytest.skip(f"{kind} cannot be mounted here: {probe.stderr.strip()}")
    writer = (sys.executable, "-m", "tests.crash.full_disk", str(directory))
    ended = subprocess.run(
        in_small_file_system(kind, directory, *writer),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
