"""Where a command may write: what could not be written, or should not, is refused before anything
takes time, in one line.

A link stands for what it leads to. Devices and pipes take a report as they are, and are never
replaced.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

from analytics.errors import AnalysisError
from analytics.logs import places

_STANDARD_OUTPUT: Final = 1


@dataclass(frozen=True)
class Target:
    """An option of the command line with what it names."""

    option: str
    named: Path

    @property
    def place(self) -> Path:
        """Where it lies, whatever links lead to it."""
        return Path(os.path.realpath(self.named))

    @property
    def mode(self) -> int | None:
        """Of what is there already; None if nothing is. Raises AnalysisError."""
        status = self.status
        return None if status is None else status.st_mode

    @property
    def status(self) -> os.stat_result | None:
        try:
            return self.named.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self.refused(error.strerror or str(error)) from error

    @property
    def is_stream(self) -> bool:
        """Whether it is there and takes what is written to it, without being a file."""
        return self.mode is not None and is_stream(self.mode)

    def refused(self, why: str) -> AnalysisError:
        return AnalysisError(f"{self.option}: {self.named}: {why}")


def is_stream(mode: int) -> bool:
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def check_targets(
    out: Path | None, report: Path | None, spark_log: Path | None, log_dirs: Iterable[str]
) -> None:
    """Raises AnalysisError for the first that will not do."""
    files = [
        Target(option, named)
        for option, named in (("--report", report), ("--spark-log", spark_log))
        if named is not None
    ]
    folders = [] if out is None else [Target("--out", out)]
    for one in folders:
        _check_folder(one)
    for one in files:
        _check_file(one)
    made = [one for one in folders + files if not one.is_stream]
    for one, other in combinations(made, 2):
        if one.place == other.place or other.place in one.place.parents:
            raise one.refused(f"cannot be there beside {other.option}: {other.named}")
    for log_dir in sorted({os.path.realpath(one) for one in log_dirs if places.is_local(one)}):
        for one in made:
            if one.place.is_relative_to(log_dir):
                raise one.refused(
                    f"lies in the log directory {log_dir}, which is a broker's; name another place"
                )


def _check_folder(target: Target) -> None:
    mode = target.mode
    if mode is None:
        _check_writable(target, _nearest(target.place))
        return
    try:
        is_empty = stat.S_ISDIR(mode) and not os.listdir(target.named)
    except OSError as error:
        raise target.refused(error.strerror or str(error)) from error
    if not is_empty:
        raise target.refused("is there already and not an empty directory")
    _check_writable(target, target.named.absolute())


def _check_file(target: Target) -> None:
    status = target.status
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise target.refused("is a directory; name a file")
    if status is None or stat.S_ISREG(status.st_mode):
        folder = target.place.parent
        if not folder.is_dir():
            raise target.refused("there is no such directory")
        _check_writable(target, folder)
        if status is not None and _is_standard_output(status):
            raise target.refused("is where standard output goes; name another file")
    elif not is_stream(status.st_mode):
        raise target.refused("is no file; name one")
    elif not os.access(target.named, os.W_OK):
        raise target.refused("nothing can be written to it")


def _is_standard_output(status: os.stat_result) -> bool:
    try:
        return os.path.samestat(status, os.fstat(_STANDARD_OUTPUT))
    except OSError:  # closed
        return False


def _check_writable(target: Target, folder: Path) -> None:
    if not folder.is_dir():
        raise target.refused(f"{folder} is not a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise target.refused(f"nothing can be written to {folder}")


def _nearest(path: Path) -> Path:
    """The folder in which a path would be made: its parent, or the first above that is there."""
    return next(folder for folder in path.parents if folder.exists())
