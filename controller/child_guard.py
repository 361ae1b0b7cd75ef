"""Starts one command that must not outlive the process that asked for it, whatever kills that one.

Run as a script, by path: ``python -I -S child_guard.py PARENT_PID COMMAND...``. It is a process of
its own because what it does has to happen between fork and exec, where a threaded broker must not
run Python. It owns that tie and knows nothing of the command; standard library only.
"""

import os
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1
_PARENT_GONE = 125


def command() -> list[str]:
    """What stands before a command that must end with the calling process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid())]


def tie_to_parent(parent_pid: int) -> bool:
    """Ask Linux to kill this process (and what it turns into by exec) once its parent is gone."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes
    except ImportError:
        return False
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        return False
    if os.getppid() != parent_pid:  # it died before the request was made: no signal will come
        os._exit(_PARENT_GONE)
    return True


def run_while_stdin_is_open(guarded: list[str]) -> int:
    """Run the command as a child and kill it when the pipe on standard input breaks."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the group gets it; the child decides
    child = subprocess.Popen(guarded, stdin=subprocess.DEVNULL, restore_signals=True)

    def kill_at_end_of_pipe() -> None:
        while os.read(0, 1024):
            continue
        child.kill()

    threading.Thread(target=kill_at_end_of_pipe, daemon=True).start()
    return child.wait()


def main(arguments: list[str]) -> None:
    parent_pid, *guarded = arguments
    if tie_to_parent(int(parent_pid)):
        os.execvp(guarded[0], guarded)
    os._exit(run_while_stdin_is_open(guarded) & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1:])
