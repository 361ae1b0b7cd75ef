"""The streaming reader driven as Spark drives it, without Spark."""

from pathlib import Path
from typing import Any

from analytics.source.admission import AdmittingLogStreamReader
from analytics.source.options import parse_options
from analytics.source.streaming import LogStreamReader

EARLIEST = {"startingOffsets": "earliest"}


def reader(directory: Path, **options: str) -> AdmittingLogStreamReader:
    return AdmittingLogStreamReader(
        parse_options({"path": str(directory), **options}, is_streaming=True)
    )


def old_reader(directory: Path, **options: str) -> LogStreamReader:
    return LogStreamReader(parse_options({"path": str(directory), **options}, is_streaming=True))


def read(stream: LogStreamReader, start: Any, end: Any) -> list[tuple[str, int]]:
    return [
        (f"{row['topic']}-{row['partition']}", row["offset"])
        for split in stream.partitions(start, end)
        for table in stream.read(split)
        for row in table.to_pylist()
    ]


def offsets(stream: LogStreamReader, start: Any, end: Any) -> list[int]:
    return [offset for _, offset in read(stream, start, end)]
