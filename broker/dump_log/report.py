"""What a dump prints: its lines, what it could not show, and the complaints at the end.

Owns the two streams and the form of complaints. They come last and on standard error, as
kafka-dump-log prints them, so that scripts find them. Must not know files or records.
"""

import os
from collections.abc import Iterable
from typing import Final, TextIO

Pair = tuple[int, int]
_Complaints = dict[str, list[Pair]]

# In place of the offset that an index names and its segment does not have.
NO_SUCH_OFFSET: Final = -1


class OutputError(Exception):
    """Standard output cannot be written to; its cause says why."""


class Report:
    """Lines go out at once, complaints are kept until the end."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self.has_failed = False
        self._index_mismatches: _Complaints = {}
        self._time_mismatches: _Complaints = {}
        self._times_out_of_order: _Complaints = {}
        self._offsets_not_found: _Complaints = {}
        self._non_consecutive: _Complaints = {}

    def line(self, text: str) -> None:
        try:
            self._out.write(f"{text}\n")
        except OSError as error:
            raise OutputError from error

    def trailing_bytes(self, count: int, path: str) -> None:
        """What follows the last whole entry of a file, if there is anything."""
        if count > 0:
            self.line(f"Found {count} invalid bytes at the end of {os.path.basename(path)}")

    def problem(self, text: str) -> None:
        """Something could not be shown: said where it is met, and in the exit status."""
        self.has_failed = True
        self._flush()
        self._err.write(f"{text}\n")

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        _add(self._index_mismatches, path, index_offset, log_offset)

    def time_mismatch(self, path: str, index_timestamp: int, log_timestamp: int) -> None:
        _add(self._time_mismatches, path, index_timestamp, log_timestamp)

    def time_out_of_order(self, path: str, timestamp: int, previous: int) -> None:
        _add(self._times_out_of_order, path, timestamp, previous)

    def offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        _add(self._offsets_not_found, path, index_offset, log_offset)

    def non_consecutive(self, path: str, offset: int, next_offset: int) -> None:
        _add(self._non_consecutive, path, offset, next_offset)

    def finish(self) -> None:
        """Print the complaints, kind by kind; the newest first where Kafka has it so."""
        self._flush()
        self._print(
            self._index_mismatches,
            "Mismatches in :{path}",
            "  Index offset: {0}, log offset: {1}",
            newest_first=True,
        )
        self._print(
            self._time_mismatches,
            "Found timestamp mismatch in :{path}",
            "  Index timestamp: {0}, log timestamp: {1}",
        )
        self._print(
            self._times_out_of_order,
            "Found out of order timestamp in :{path}",
            "  Index timestamp: {0}, Previously indexed timestamp: {1}",
        )
        self._print(
            self._offsets_not_found,
            "The following indexed offsets are not found in the log.",
            "Indexed offset: {0}, found log offset: {1}",
        )
        self._print(
            self._non_consecutive,
            "Non-consecutive offsets in {path}",
            "  {0} is followed by {1}",
            newest_first=True,
        )
        self._err.flush()

    def _flush(self) -> None:
        try:
            self._out.flush()
        except OSError as error:
            raise OutputError from error

    def _print(
        self, complaints: _Complaints, title: str, line: str, *, newest_first: bool = False
    ) -> None:
        for path, pairs in complaints.items():
            ordered: Iterable[Pair] = reversed(pairs) if newest_first else pairs
            self._err.write(f"{title.format(path=path)}\n")
            self._err.writelines(f"{line.format(*pair)}\n" for pair in ordered)


def _add(complaints: _Complaints, path: str, found: int, expected: int) -> None:
    complaints.setdefault(os.path.join(os.getcwd(), path), []).append((found, expected))
