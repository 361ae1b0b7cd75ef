"""The batch table: one Arrow row per batch, from the headers alone.

Owns the columns of the table and how they are filled. Knows files and headers, not Spark.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from analytics.decoding.header_kernel import Header
from analytics.decoding.sections import intact_batches
from analytics.decoding.windows import BatchWindows, HeaderWindows
from analytics.logs.partitions import Segment
from analytics.pieces import NO_LIMIT, OpenPiece, Piece, open_piece
from analytics.problems import Kind, Report, problem_in, report_end
from analytics.timestamps import LATEST_TIMESTAMP_MS
from storage.records.batches import parse_header
from storage.records.errors import RecordDataError
from storage.records.layout import (
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    MAGIC_0,
    NO_PRODUCER_ID,
    TRANSACTIONAL_FLAG,
    Codec,
)
from storage.records.legacy import UNKNOWN_RECORD_COUNT, read_messages

_US_PER_MS: Final = 1000

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
        ("control_type", pa.string()),
        ("leader_epoch", pa.int32()),
        ("log_dir", pa.string()),
        ("segment", pa.string()),
        ("position", pa.int64()),
        ("crc_ok", pa.bool_()),
    ]
)

_CODEC_NAMES: Final = pa.array([codec.name.lower() for codec in Codec])
_TIMESTAMP_TYPE_NAMES: Final = pa.array(["CreateTime", "LogAppendTime"])
_CONTROL_NAMES: Final = pa.array(["abort", "commit"])


def read_batches(
    pieces: Iterable[Piece],
    report: Report,
    *,
    check_crc: bool = False,
    fail_on_data_loss: bool = True,
    first_timestamp: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of some pieces, some thousand at a time. Whether checksums are right is known only
    where that was asked for: then all bytes are read."""
    for piece in pieces:
        for opened in open_piece(piece, fail_on_data_loss):
            yield from _read(opened, report, check_crc, first_timestamp)


def _read(
    opened: OpenPiece, report: Report, check_crc: bool, first_timestamp: int | None
) -> Iterator[pa.RecordBatch]:
    piece = opened.piece
    kind = BatchWindows if check_crc else HeaderWindows
    windows = kind(opened.file, piece.start, piece.end)
    for window in windows:
        crc_ok = intact_batches(window.headers, window) if check_crc else None
        headers = _with_opened_wrappers(window.headers, opened, report)
        is_chosen = headers[:, Header.LAST_OFFSET] >= piece.first_offset
        is_chosen &= headers[:, Header.BASE_OFFSET] < piece.end_offset
        if first_timestamp is not None:
            is_chosen &= headers[:, Header.MAX_TIMESTAMP] >= first_timestamp
        if not is_chosen.all():
            headers = headers[is_chosen]
            crc_ok = crc_ok[is_chosen] if crc_ok is not None else None
        if len(headers):
            yield _to_arrow(piece.segment, headers, crc_ok)
    if not windows.is_complete:
        report_end(windows, piece, report)


def _with_opened_wrappers(headers: Any, opened: OpenPiece, report: Report) -> Any:
    """What the header of a compressed message of magic 0 or 1 does not tell: the messages in it,
    the first one's offset and time."""
    wrappers = np.flatnonzero(headers[:, Header.RECORD_COUNT] == UNKNOWN_RECORD_COUNT)
    if len(wrappers):
        headers = headers.copy()
    for row in wrappers:
        header = headers[row]
        position, size = int(header[Header.POSITION]), int(header[Header.SIZE])
        data = opened.file.read(size, position)
        try:
            messages = read_messages(data, parse_header(data))
        except RecordDataError as error:
            offset = int(header[Header.BASE_OFFSET])
            kind = Kind.UNREADABLE
            report(problem_in(opened.piece, kind, offset, position, size, str(error)))
            header[Header.RECORD_COUNT] = 0
            continue
        header[Header.BASE_OFFSET] = messages[0].record.offset
        header[Header.BASE_TIMESTAMP] = messages[0].record.timestamp
        header[Header.RECORD_COUNT] = len(messages)
    return headers


def _to_arrow(segment: Segment, headers: Any, crc_ok: Any) -> pa.RecordBatch:
    rows = len(headers)
    attributes = headers[:, Header.ATTRIBUTES]
    is_append_time = attributes & LOG_APPEND_TIME_FLAG != 0
    has_no_time = headers[:, Header.MAGIC] == MAGIC_0
    has_no_producer = headers[:, Header.PRODUCER_ID] <= NO_PRODUCER_ID
    latest = headers[:, Header.MAX_TIMESTAMP]
    columns: dict[str, Any] = {
        "topic": pa.repeat(segment.topic, rows),
        "partition": pa.repeat(pa.scalar(segment.partition, pa.int32()), rows),
        "base_offset": _numbers(headers, Header.BASE_OFFSET),
        "last_offset": _numbers(headers, Header.LAST_OFFSET),
        "record_count": _numbers(headers, Header.RECORD_COUNT, pa.int32()),
        "bytes": _numbers(headers, Header.SIZE, pa.int32()),
        "magic": _numbers(headers, Header.MAGIC, pa.int32()),
        "codec": _names(_CODEC_NAMES, attributes & CODEC_MASK),
        "timestamp_type": _names(_TIMESTAMP_TYPE_NAMES, np.where(has_no_time, -1, is_append_time)),
        # Records stamped by the broker all have the batch's latest timestamp.
        "first_timestamp": _moments(
            np.where(is_append_time, latest, headers[:, Header.BASE_TIMESTAMP])
        ),
        "last_timestamp": _moments(latest),
        "producer_id": _numbers(headers, Header.PRODUCER_ID, pa.int64(), has_no_producer),
        "producer_epoch": _numbers(headers, Header.PRODUCER_EPOCH, pa.int32(), has_no_producer),
        "base_sequence": _numbers(headers, Header.BASE_SEQUENCE, pa.int32(), has_no_producer),
        "is_transactional": pa.array(attributes & TRANSACTIONAL_FLAG != 0),
        "is_control": pa.array(attributes & CONTROL_FLAG != 0),
        "control_type": _names(_CONTROL_NAMES, headers[:, Header.CONTROL_TYPE]),
        "leader_epoch": _numbers(headers, Header.LEADER_EPOCH, pa.int32()),
        "log_dir": pa.repeat(segment.log_dir, rows),
        "segment": pa.repeat(segment.path, rows),
        "position": _numbers(headers, Header.POSITION),
        "crc_ok": pa.nulls(rows, pa.bool_()) if crc_ok is None else pa.array(crc_ok),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=ARROW_SCHEMA)


def _numbers(headers: Any, column: Header, kind: Any = None, is_null: Any = None) -> pa.Array:
    values = np.ascontiguousarray(headers[:, column])
    return pa.array(values, pa.int64(), mask=is_null).cast(kind or pa.int64(), safe=False)


def _names(names: pa.Array, numbers: Any) -> pa.Array:
    """A name for each number; null for a number that has none."""
    is_unknown = (numbers < 0) | (numbers >= len(names))
    return names.take(pa.array(numbers, pa.int64(), mask=is_unknown))


def _moments(timestamps: Any) -> pa.Array:
    is_none = (timestamps < 0) | (timestamps > LATEST_TIMESTAMP_MS)
    return pa.array(np.where(is_none, 0, timestamps) * _US_PER_MS, pa.int64(), mask=is_none).cast(
        _TIMESTAMP
    )


def whole(segment: Segment) -> Piece:
    """All of a segment."""
    return Piece(segment, 0, segment.size, end_offset=NO_LIMIT)
