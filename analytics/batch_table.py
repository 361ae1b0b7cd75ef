"""The batches of a segment file as Arrow rows: one row each, from the headers alone.

Owns the columns of the batch table and how they are filled. Knows files and headers, not Spark.
"""

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import pyarrow as pa

from analytics.log_dirs import Segment
from storage.batch_scan import scan_headers
from storage.files import Descriptor, Files
from storage.records.errors import RecordDataError
from storage.records.layout import CODEC_MASK, NO_PRODUCER_ID, BatchHeader, Codec, TimestampType
from storage.records.legacy import UNKNOWN_RECORD_COUNT, read_messages

ROWS_PER_ARROW_BATCH: Final = 64 * 1024

_LATEST_TIMESTAMP_MS: Final = 253_402_300_799_999  # the end of year 9999, where calendars end

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

ARROW_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("record_count", pa.int32()),
        ("bytes", pa.int32()),
        ("magic", pa.int32()),
        ("codec", pa.string()),
        ("timestamp_type", pa.string()),
        ("first_timestamp", _TIMESTAMP),
        ("last_timestamp", _TIMESTAMP),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("base_sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("leader_epoch", pa.int32()),
        ("log_dir", pa.string()),
        ("segment", pa.string()),
        ("position", pa.int64()),
    ]
)

SPARK_SCHEMA: Final = """
    topic string, partition int, base_offset bigint, last_offset bigint, record_count int,
    bytes int, magic int, codec string, timestamp_type string, first_timestamp timestamp,
    last_timestamp timestamp, producer_id bigint, producer_epoch int, base_sequence int,
    is_transactional boolean, is_control boolean, leader_epoch int, log_dir string,
    segment string, position bigint
"""

_CODEC_NAMES: Final = {codec.value: codec.name.lower() for codec in Codec}
_TIMESTAMP_TYPE_NAMES: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: None,
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


class LocatedBatch(NamedTuple):
    position: int
    header: BatchHeader


def read_segment(segment: Segment, files: Files | None = None) -> Iterator[pa.RecordBatch]:
    """The batch table of one segment, some thousand rows at a time.

    A file that the broker has deleted meanwhile has no rows. A batch that is cut off or damaged
    ends the file, as it does for a broker that starts.
    """
    files = files or Files()
    try:
        descriptor = files.open(segment.path, os.O_RDONLY)
        end = os.fstat(descriptor.fileno()).st_size
    except FileNotFoundError:
        return
    located = _whole_batches(descriptor, end)
    while rows := list(islice(located, ROWS_PER_ARROW_BATCH)):
        yield _to_arrow(segment, rows)


def _whole_batches(descriptor: Descriptor, end: int) -> Iterator[LocatedBatch]:
    try:
        for position, header in scan_headers(descriptor, 0, end):
            if header.record_count == UNKNOWN_RECORD_COUNT:
                header = _open_wrapper(descriptor, position, header)
            yield LocatedBatch(position, header)
    except RecordDataError:
        return


def _open_wrapper(descriptor: Descriptor, position: int, header: BatchHeader) -> BatchHeader:
    """What the header of a compressed message of magic 0 or 1 does not tell: the messages in
    it and the first one's offset and time."""
    messages = read_messages(descriptor.read(header.size_in_bytes, position), header)
    if not messages:
        return header._replace(record_count=0)
    first = messages[0].record
    return header._replace(
        base_offset=first.offset,
        last_offset_delta=header.last_offset - first.offset,
        base_timestamp=first.timestamp,
        record_count=len(messages),
    )


def _to_arrow(segment: Segment, rows: list[LocatedBatch]) -> pa.RecordBatch:
    headers = [row.header for row in rows]
    has_producer = [header.producer_id > NO_PRODUCER_ID for header in headers]
    columns: dict[str, Any] = {
        "topic": pa.repeat(segment.topic, len(rows)),
        "partition": pa.repeat(pa.scalar(segment.partition, pa.int32()), len(rows)),
        "base_offset": [header.base_offset for header in headers],
        "last_offset": [header.last_offset for header in headers],
        "record_count": [header.record_count for header in headers],
        "bytes": [header.size_in_bytes for header in headers],
        "magic": [header.magic for header in headers],
        "codec": [_CODEC_NAMES.get(header.attributes & CODEC_MASK) for header in headers],
        "timestamp_type": [_TIMESTAMP_TYPE_NAMES[header.timestamp_type] for header in headers],
        "first_timestamp": [_first_timestamp(header) for header in headers],
        "last_timestamp": [_microseconds(header.max_timestamp) for header in headers],
        "producer_id": _where(has_producer, [header.producer_id for header in headers]),
        "producer_epoch": _where(has_producer, [header.producer_epoch for header in headers]),
        "base_sequence": _where(has_producer, [header.base_sequence for header in headers]),
        "is_transactional": [header.is_transactional for header in headers],
        "is_control": [header.is_control for header in headers],
        "leader_epoch": [header.partition_leader_epoch for header in headers],
        "log_dir": pa.repeat(segment.log_dir, len(rows)),
        "segment": pa.repeat(segment.path, len(rows)),
        "position": [row.position for row in rows],
    }
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for field, column in zip(ARROW_SCHEMA, columns.values(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def _first_timestamp(header: BatchHeader) -> int | None:
    """Records stamped by the broker all have the batch's latest timestamp."""
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return _microseconds(header.max_timestamp if is_append_time else header.base_timestamp)


def _microseconds(timestamp_ms: int) -> int | None:
    return timestamp_ms * 1000 if 0 <= timestamp_ms <= _LATEST_TIMESTAMP_MS else None


def _where(kept: list[bool], values: list[int]) -> list[int | None]:
    return [value if keep else None for keep, value in zip(kept, values, strict=True)]
