"""Ctrl-C, SIGTERM and a terminal that is closed end a command in good order, once."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The command is to end. No Exception, so that nothing on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        self.status: Final = 128 + number
        super().__init__(f"interrupted by {signal.Signals(number).name}")


@contextmanager
def interruptible() -> Iterator[None]:
    """Signals that end the command raise Interrupted in the block; those that follow the first
    wait until it has cleaned up."""
    before = {number: signal.getsignal(number) for number in _ENDING}

    def interrupt(number: int, _frame: FrameType | None) -> None:
        for other in _ENDING:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(number)

    for number in _ENDING:
        if before[number] is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave(status: int) -> int:
    """The exit status of a command that was interrupted and has cleaned up. Where threads of it
    are still at work, the process ends here: the interpreter would wait for them, and they may
    wait for a disk that does not answer."""
    others = (one for one in threading.enumerate() if one is not threading.current_thread())
    if not all(one.daemon for one in others):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(status)
    return status
