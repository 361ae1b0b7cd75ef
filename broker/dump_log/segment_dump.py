"""Shows the batches of a segment (`.log`), and their records where these are asked for.

Owns the lines about batches and records and the check that offsets have no gaps. Must not know
indexes. One piece of the file is in memory at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from broker.dump_log.opened import OpenedFile
from broker.dump_log.payloads import Formatter, format_nothing
from broker.dump_log.report import Report
from broker.versioned_records import MalformedRecordError
from storage.batch_scan import scan_batches
from storage.records.batches import Batch, is_intact, iter_batches, iter_records
from storage.records.compression import decompress
from storage.records.control import (
    CONTROL_KEY,
    ControlType,
    parse_control_type,
    parse_end_txn_marker,
)
from storage.records.errors import RecordDataError, UnsupportedCodecError
from storage.records.layout import CODEC_MASK, MAGIC_2, BatchHeader, TimestampType
from storage.records.legacy import read_messages
from storage.records.record import Record

_TIMESTAMP_NAMES: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
_SEQUENCE_MODULUS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """How much of a segment is shown."""

    shows_records: bool
    formatter: Formatter = format_nothing


def dump_segment(path: str, base_offset: int, options: SegmentOptions, report: Report) -> None:
    """Show a segment up to its first damage that hides where the next batch begins."""
    file = OpenedFile(path)
    report.line(f"Starting offset: {base_offset}")
    records = _RecordDump(path, options.formatter, report)
    end_of_valid = 0
    try:
        for position, batch in scan_batches(file.descriptor, 0, file.size):
            report.line(_batch_line(batch, position))
            end_of_valid = position + len(batch.data)
            if options.shows_records:
                records.dump(batch, position)
    except RecordDataError as error:
        report.problem(f"{path}: position {end_of_valid}: {error}")
    report.trailing_bytes(file.size - end_of_valid, path)


def _batch_line(batch: Batch, position: int) -> str:
    header = batch.header
    if header.magic >= MAGIC_2:
        start = (
            f"baseOffset: {header.base_offset} lastOffset: {header.last_offset}"
            f" count: {header.record_count}"
            f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence}"
            f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
            f" partitionLeaderEpoch: {header.partition_leader_epoch}"
            f" isTransactional: {_boolean(header.is_transactional)}"
            f" isControl: {_boolean(header.is_control)}"
        )
    else:
        start = f"offset: {header.last_offset}"
    return (
        f"{start} position: {position}"
        f" {_TIMESTAMP_NAMES[header.timestamp_type]}: {header.max_timestamp}"
        f" size: {header.size_in_bytes} magic: {header.magic}"
        f" compresscodec: {_codec_name(header)} crc: {header.crc}"
        f" isvalid: {_boolean(is_intact(batch))}"
    )


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _codec_name(header: BatchHeader) -> str:
    try:
        return header.codec.name
    except UnsupportedCodecError:
        return f"UNKNOWN({header.attributes & CODEC_MASK})"


class _RecordDump:
    """Shows the records of one batch after the other, and follows their offsets."""

    def __init__(self, path: str, formatter: Formatter, report: Report) -> None:
        self._path = path
        self._format = formatter
        self._report = report
        self._last_offset: int | None = None

    def dump(self, batch: Batch, position: int) -> None:
        """Show a batch's records up to the first that cannot be read."""
        try:
            if batch.header.magic >= MAGIC_2:
                self._dump_records(batch)
            else:
                self._dump_messages(batch)
        except RecordDataError as error:
            self._report.problem(f"{self._path}: batch at position {position}: {error}")

    def _dump_records(self, batch: Batch) -> None:
        header = batch.header
        timestamp_name = _TIMESTAMP_NAMES[header.timestamp_type]
        is_control = header.is_control
        for record in iter_records(batch):
            self._follow(record.offset)
            header_keys = ",".join(key for key, _ in record.headers)
            self._report.line(
                f"{_record_start(record, timestamp_name)}"
                f" sequence: {_sequence(header, record.offset)} headerKeys: [{header_keys}]"
                f"{_control_text(record) if is_control else self._payload(record)}"
            )

    def _dump_messages(self, batch: Batch) -> None:
        timestamp_name = _TIMESTAMP_NAMES[batch.header.timestamp_type]
        for record, message in zip(iter_records(batch), _messages(batch), strict=False):
            self._follow(record.offset)
            self._report.line(
                f"{_record_start(record, timestamp_name)}"
                f" crc: {message.header.crc} isvalid: {_boolean(is_intact(message))}"
                f"{self._payload(record)}"
            )

    def _follow(self, offset: int) -> None:
        last_offset = self._last_offset
        if last_offset is not None and offset != last_offset + 1:
            self._report.non_consecutive(self._path, last_offset, offset)
        self._last_offset = offset

    def _payload(self, record: Record) -> str:
        try:
            return self._format(record.key, record.value)
        except MalformedRecordError as error:
            self._report.problem(f"{self._path}: offset {record.offset}: {error}")
            return ""


def _record_start(record: Record, timestamp_name: str) -> str:
    key, value = record.key, record.value
    return (
        f"| offset: {record.offset} {timestamp_name}: {record.timestamp}"
        f" keysize: {-1 if key is None else len(key)}"
        f" valuesize: {-1 if value is None else len(value)}"
    )


def _sequence(header: BatchHeader, offset: int) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + offset - header.base_offset) % _SEQUENCE_MODULUS


def _control_text(record: Record) -> str:
    control_type = parse_control_type(record.key)
    if control_type is ControlType.UNKNOWN:
        number = CONTROL_KEY.unpack_from(record.key or b"")[1]
        return f" controlType: UNKNOWN({number})"
    marker = parse_end_txn_marker(record.key, record.value)
    return f" endTxnMarker: {marker.control_type.name} coordinatorEpoch: {marker.coordinator_epoch}"


def _messages(batch: Batch) -> Iterator[Batch]:
    """A message of magic 0 or 1 itself, or those in it if it is a wrapper, with their CRCs."""
    header = batch.header
    if not header.attributes & CODEC_MASK:
        return iter((batch,))
    unpacked = header._replace(attributes=header.attributes & ~CODEC_MASK)
    wrapped = read_messages(batch.data, unpacked)[0].record.value
    return iter_batches(decompress(header.codec, wrapped or b"", header.magic))
