"""Processes that files can be closed to, root's as well."""

import os
import shutil
import subprocess
import sys

import pytest

# Root reads and writes everything, unless these powers are taken from it.
AS_OTHERS = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
)
needs_permissions = pytest.mark.skipif(
    bool(AS_OTHERS) and shutil.which("setpriv") is None,
    reason="root reads everything, and there is no setpriv to prevent it",
)


def told_to_others(script: str) -> str:
    """What a program prints, or the last line of why it failed."""
    command = [*AS_OTHERS, sys.executable, "-c", script]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return (finished.stdout if finished.returncode == 0 else finished.stderr).splitlines()[-1]
