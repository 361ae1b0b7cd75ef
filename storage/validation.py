"""Whether batches may be appended to a log, and which offsets they get.

Owns the order of an append's checks: as a leader (`validate_for_leader`: records from clients
and coordinators get their offsets here, in place wherever possible) and as a follower
(`validate_for_follower`: a leader's batches are taken as they are). Knows no files and, of the
log's state, only the next offset; a refused payload is left as it was. Whether sequence numbers
follow earlier ones is checked where producers' state is kept.

A batch of magic 2 whose header, sizes and CRC hold is not opened, unless a setting asks for it.
"""

from typing import Final, NamedTuple

from storage.append_info import AppendOrigin
from storage.checksums import crc32c
from storage.errors import OffsetsOutOfOrderError
from storage.record_checks import (
    TELLING_ATTRIBUTES,
    CheckedRecords,
    RecordRules,
    check_payload,
    check_records,
    complete_batches,
)
from storage.records.batches import Batch, iter_batches
from storage.records.builder import ProducerInfo
from storage.records.conversion import BatchFormat, build_at, ensure_size
from storage.records.layout import (
    ATTRIBUTES_FIELD,
    ATTRIBUTES_POSITION,
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CRC_FIELD,
    CRC_POSITION,
    ENTRY_PREFIX,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_0,
    MAGIC_2,
    MAX_TIMESTAMP_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_FIELD,
    BatchHeader,
    Buffer,
    Codec,
    TimestampType,
    WritableBuffer,
    set_base_offset,
)
from storage.records.legacy import set_message_timestamp

__all__ = [
    "RecordRules",
    "ValidatedRecords",
    "validate_for_follower",
    "validate_for_leader",
]

# Bound once for the hot path: on Python 3.11 the look-up of an enum's member is slow.
_CLIENT: Final = AppendOrigin.CLIENT
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME


class ValidatedRecords(NamedTuple):
    """Bytes that may be written to the log as they are, and what the log must know of them.

    `data` is the payload itself, or new bytes where it had to be rewritten. `headers` has one
    entry per batch, offsets assigned: producer ids, epochs and sequences for the producer state,
    leader epochs for the epoch cache. `first_offset` of a follower's payload that begins with a
    compressed message of magic 0 or 1 is that message's last offset.
    """

    data: Buffer
    first_offset: int
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    log_append_time: int
    headers: tuple[BatchHeader, ...]
    converted_records: int = 0


def validate_for_leader(
    payload: WritableBuffer,
    rules: RecordRules,
    first_offset: int,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin = _CLIENT,
) -> ValidatedRecords:
    """Judge a payload and number its records from `first_offset` on, patching it in place.

    This is the hot path: one header, one CRC, one patch; whatever is out of the ordinary takes
    the thorough way, which finds out what it is.
    """
    header = _header_of_ordinary_batch(payload, rules, origin)
    if header is None:
        return _validate_thoroughly(payload, rules, first_offset, leader_epoch, now_ms, origin)
    log_append_time = NO_TIMESTAMP
    max_timestamp = header.max_timestamp
    if rules.looks_into_records and origin is _CLIENT:
        checked = check_records([Batch(header, memoryview(payload))], rules, now_ms)
        if not checked.numbering_can_be_kept:
            return _validate_thoroughly(payload, rules, first_offset, leader_epoch, now_ms, origin)
        max_timestamp = checked.max_timestamp
    if rules.timestamp_type is _LOG_APPEND_TIME:
        log_append_time = max_timestamp = now_ms
        _set_timestamp(payload, header.attributes | LOG_APPEND_TIME_FLAG, now_ms)
    elif max_timestamp != header.max_timestamp:
        _set_timestamp(payload, header.attributes, max_timestamp)
    ENTRY_PREFIX.pack_into(payload, 0, first_offset, header.batch_length, leader_epoch, MAGIC_2)
    assigned = BatchHeader._make(BATCH_HEADER.unpack_from(payload))
    last_offset = first_offset + header.last_offset_delta
    return ValidatedRecords(
        payload, first_offset, last_offset, max_timestamp, last_offset, log_append_time, (assigned,)
    )


def _header_of_ordinary_batch(
    payload: Buffer, rules: RecordRules, origin: AppendOrigin
) -> BatchHeader | None:
    """The header of a payload that is one magic 2 batch, in order and to be stored as it came."""
    size = len(payload)
    if size < BATCH_HEADER_SIZE:
        return None
    header = BatchHeader._make(BATCH_HEADER.unpack_from(payload))
    is_from_client = origin is _CLIENT
    as_is = rules.as_is_from_client if is_from_client else rules.as_is_from_coordinator
    if (
        header.magic == MAGIC_2
        and header.attributes & TELLING_ATTRIBUTES in as_is
        and header.batch_length == size - LOG_OVERHEAD
        and size <= rules.max_message_bytes
        and header.base_offset == 0
        and header.last_offset_delta == header.record_count - 1 >= 0
        and (header.producer_id < 0 or header.base_sequence >= 0 or not is_from_client)
        and crc32c(memoryview(payload)[ATTRIBUTES_POSITION:]) == header.crc
    ):
        return header
    return None


def validate_for_follower(payload: Buffer, max_message_bytes: int) -> ValidatedRecords:
    """Judge what a leader sent: sizes, CRCs and the order of offsets; nothing is changed.

    A last batch that is cut off is left out, so there may be nothing to append: no `headers`.
    """
    headers: list[BatchHeader] = []
    size = 0
    last_offset = max_timestamp = offset_of_max_timestamp = -1
    for header, data in complete_batches(payload, max_message_bytes):
        if header.last_offset <= last_offset:
            raise OffsetsOutOfOrderError(
                f"A batch with last offset {header.last_offset} follows offset {last_offset}"
            )
        last_offset = header.last_offset
        if header.max_timestamp > max_timestamp:
            max_timestamp = header.max_timestamp
            offset_of_max_timestamp = last_offset
        size += len(data)
        headers.append(header)
    return ValidatedRecords(
        payload if size == len(payload) else memoryview(payload)[:size],
        headers[0].base_offset if headers else -1,
        last_offset,
        max_timestamp,
        offset_of_max_timestamp,
        NO_TIMESTAMP,
        tuple(headers),
    )


def _set_timestamp(batch: WritableBuffer, attributes: int, max_timestamp: int) -> None:
    """Patch a magic 2 batch's attributes, its largest timestamp and thereby its CRC."""
    ATTRIBUTES_FIELD.pack_into(batch, ATTRIBUTES_POSITION, attributes)
    TIMESTAMP_FIELD.pack_into(batch, MAX_TIMESTAMP_POSITION, max_timestamp)
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    CRC_FIELD.pack_into(batch, CRC_POSITION, crc)


def _validate_thoroughly(
    payload: WritableBuffer,
    rules: RecordRules,
    first_offset: int,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
) -> ValidatedRecords:
    """The way of payloads that are refused, opened, converted, control batches or old formats."""
    batches = list(complete_batches(payload, rules.max_message_bytes))
    check_payload(batches, rules.magic, origin)
    target = _target_format(batches[0].header, rules, now_ms)
    is_kept = _can_be_kept(batches[0].header, target)
    checked = None
    if not is_kept or _must_be_opened(batches, rules, origin):
        checked = check_records(batches, rules, now_ms)
        is_kept = is_kept and checked.numbering_can_be_kept
    if checked and not is_kept:
        first = batches[0].header
        converted = build_at(
            checked.records,
            first_offset,
            target,
            producer=ProducerInfo(
                first.producer_id, first.producer_epoch, first.base_sequence, first.is_transactional
            ),
            leader_epoch=leader_epoch,
            max_bytes=rules.max_message_bytes,
        )
        for batch in iter_batches(converted.data):
            ensure_size(len(batch.data), rules.max_message_bytes)
        return _summarize(converted.data, first_offset, target, converted.record_count)
    if batches[0].header.magic == MAGIC_2:
        _assign_batch(batches[0], checked, first_offset, leader_epoch, target)
    else:
        _assign_messages(batches, checked, first_offset, target)
    size = sum(len(batch.data) for batch in batches)
    return _summarize(memoryview(payload)[:size], first_offset, target, 0)


def _target_format(first: BatchHeader, rules: RecordRules, now_ms: int) -> BatchFormat:
    # Of several batches none is compressed, so the first one's codec is that of all.
    return BatchFormat(
        rules.magic,
        first.codec if rules.codec is None else rules.codec,
        now_ms if rules.timestamp_type is TimestampType.LOG_APPEND_TIME else None,
    )


def _can_be_kept(first: BatchHeader, target: BatchFormat) -> bool:
    """Whether the bytes can stay, but for offsets and timestamps in their headers."""
    if first.is_control and first.codec is Codec.NONE:
        return True
    if first.magic != target.magic or first.codec is not target.codec:
        return False
    # Inside a wrapper of magic 0 offsets are absolute, so they cannot be assigned from outside.
    return first.magic != MAGIC_0 or first.codec is Codec.NONE


def _must_be_opened(batches: list[Batch], rules: RecordRules, origin: AppendOrigin) -> bool:
    first = batches[0].header
    if first.magic != MAGIC_2:
        return True
    return origin is AppendOrigin.CLIENT and (
        rules.looks_into_records or first.timestamp_type is TimestampType.LOG_APPEND_TIME
    )


def _assign_batch(
    batch: Batch,
    checked: CheckedRecords | None,
    first_offset: int,
    leader_epoch: int,
    target: BatchFormat,
) -> None:
    header, data = batch
    ENTRY_PREFIX.pack_into(data, 0, first_offset, header.batch_length, leader_epoch, MAGIC_2)
    if target.log_append_time is not None:
        attributes = header.attributes | LOG_APPEND_TIME_FLAG
        _set_timestamp(data, attributes, target.log_append_time)
    elif checked and checked.max_timestamp != header.max_timestamp:
        _set_timestamp(data, header.attributes, checked.max_timestamp)


def _assign_messages(
    batches: list[Batch], checked: CheckedRecords | None, first_offset: int, target: BatchFormat
) -> None:
    count = len(checked.records) if checked else len(batches)
    # A wrapper stands alone and has the last offset; plain messages have one each.
    offset = first_offset + count - len(batches)
    for header, data in batches:
        set_base_offset(data, offset)
        offset += 1
        if header.magic == MAGIC_0:
            continue
        if target.log_append_time is not None:
            set_message_timestamp(data, target.log_append_time, TimestampType.LOG_APPEND_TIME)
        elif header.codec is not Codec.NONE and checked:
            set_message_timestamp(data, checked.max_timestamp, TimestampType.CREATE_TIME)


def _summarize(
    data: Buffer, first_offset: int, target: BatchFormat, converted_records: int
) -> ValidatedRecords:
    headers = tuple(batch.header for batch in iter_batches(data))
    log_append_time = target.log_append_time
    if log_append_time is None:
        max_timestamp = max(header.max_timestamp for header in headers)
        latest = next(header for header in headers if header.max_timestamp == max_timestamp)
    else:
        max_timestamp = log_append_time  # also of messages of magic 0, which do not hold it
        latest = headers[0]
    return ValidatedRecords(
        data,
        first_offset,
        headers[-1].last_offset,
        max_timestamp,
        latest.last_offset,
        NO_TIMESTAMP if log_append_time is None else log_append_time,
        headers,
        converted_records,
    )
