"""Readers as Spark drives them, without Spark: options in, splits and rows out."""

from pathlib import Path
from typing import Any

from analytics.source.options import parse_options
from analytics.source.readers import BatchReader, RecordReader, TableReader
from tests.fidelity.consumed import ConsumedRecord

TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def record_reader(directory: Path | str, **options: str) -> RecordReader:
    return RecordReader(parse_options({"path": str(directory), **options}))


def batch_reader(directory: Path | str, **options: str) -> BatchReader:
    return BatchReader(parse_options({"path": str(directory), **options}))


def rows_of(reader: TableReader) -> list[dict[str, Any]]:
    return [
        row
        for split in reader.partitions()
        for table in reader.read(split)
        for row in table.to_pylist()
    ]


def records(directory: Path | str, **options: str) -> list[dict[str, Any]]:
    return rows_of(record_reader(directory, **options))


def offsets(directory: Path | str, **options: str) -> list[int]:
    return [row["offset"] for row in records(directory, **options)]


def as_consumed(row: dict[str, Any]) -> ConsumedRecord:
    """A row of the record table in the form of what a consumer read."""
    headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
    return ConsumedRecord(
        row["offset"],
        round(row["timestamp"].timestamp() * 1000),
        TIMESTAMP_TYPES[row["timestampType"]],
        row["key"],
        row["value"],
        headers,
    )
