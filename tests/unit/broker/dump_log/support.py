"""Files to dump, and dumping them."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from broker.cli import main
from storage.offset_index import OffsetIndex
from storage.time_index import TimeIndex

SEGMENT = "00000000000000000000.log"
OFFSET_INDEX = "00000000000000000000.index"
TIME_INDEX = "00000000000000000000.timeindex"


class Dump(NamedTuple):
    """What a run of the command printed, line by line, and its exit status."""

    status: int
    lines: list[str]
    complaints: list[str]


def dump(*arguments: str | Path) -> Dump:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["dump-log", *map(str, arguments)])
    return Dump(status, out.getvalue().splitlines(), err.getvalue().splitlines())


def write(path: Path, *parts: bytes | bytearray) -> Path:
    path.write_bytes(b"".join(parts))
    return path


def offset_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(OffsetIndex.ENTRY.pack(*entry) for entry in entries)


def time_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(TimeIndex.ENTRY.pack(*entry) for entry in entries)
