"""The command itself: which files are shown how, and what comes of files that cannot be.

Owns the choice by a file's suffix and the exit status. A file that is missing, unreadable or
unknown costs one line and the status 1; the others are shown all the same.
"""

import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from broker.dump_log.index_dump import IndexOptions, dump_offset_index, dump_time_index
from broker.dump_log.report import OutputError, Report
from broker.dump_log.segment_dump import SegmentOptions, dump_segment
from broker.dump_log.state_dump import dump_snapshot, dump_txn_index

_OK: Final = 0
_FAILURE: Final = 1

_SNAPSHOT: Final = ".snapshot"
_BASE_OFFSET: Final = re.compile(r"[0-9]+")
_REPEATED_SLASHES: Final = re.compile(r"/+")


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What is shown of segments and of indexes."""

    segments: SegmentOptions
    indexes: IndexOptions


def dump_files(paths: Sequence[str], options: DumpOptions, out: TextIO, err: TextIO) -> int:
    """Show files one after the other, then what was found wrong in them; the exit status."""
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            # Records hold any text, and a terminal may be unable to show it.
            stream.reconfigure(errors="replace")
    report = Report(out, err)
    try:
        for path in paths:
            _dump_file(_shown_name(path), options, report)
        report.finish()
    except OutputError as error:
        if not isinstance(error.__cause__, BrokenPipeError):  # `| head` has seen enough
            err.write(f"standard output: {error.__cause__}\n")
        _discard(out)
        return _FAILURE
    return _FAILURE if report.has_failed else _OK


def _dump_file(path: str, options: DumpOptions, report: Report) -> None:
    report.line(f"Dumping {path}")
    try:
        _dump_by_suffix(path, options, report)
    except OSError as error:
        reason = error.strerror or str(error)
        report.problem(f"{error.filename or path}: cannot be read: {reason}")


def _dump_by_suffix(path: str, options: DumpOptions, report: Report) -> None:
    name = os.path.basename(path)
    base_name = name.split(".")[0]
    suffix = os.path.splitext(name)[1]
    if suffix == _SNAPSHOT:
        dump_snapshot(path, report)
        return
    if suffix not in (".log", ".index", ".timeindex", ".txnindex"):
        report.problem(f"Ignoring unknown file {path}")
        return
    if not _BASE_OFFSET.fullmatch(base_name):
        report.problem(f"{path}: its name does not begin with an offset")
        return
    base_offset = int(base_name)
    if suffix == ".log":
        dump_segment(path, base_offset, options.segments, report)
    elif suffix == ".index":
        dump_offset_index(path, base_offset, options.indexes, report)
    elif suffix == ".timeindex":
        dump_time_index(path, base_offset, options.indexes, report)
    else:
        dump_txn_index(path, base_offset, report)


def _shown_name(path: str) -> str:
    """A path as Java shows it."""
    return _REPEATED_SLASHES.sub("/", path)


def _discard(stream: TextIO) -> None:
    """Send what is still buffered nowhere, so that closing the stream does not fail as well."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
