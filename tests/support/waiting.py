"""Waiting for what is bound to come, without sleeping for luck."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return as soon as something holds; fail if it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("it did not happen within the time")
        time.sleep(0.02)
