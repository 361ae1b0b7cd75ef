"""Records from one format into another: magic to magic, codec to codec.

Owns what is kept and what is lost on the way, as Kafka does it: offsets and timestamps are kept;
headers are lost below magic 2, as are control batches; producer state exists in magic 2 only.
Must not know requests or logs: callers say which magic a client or a topic needs.
"""

from collections.abc import Iterable
from typing import NamedTuple

from storage.records.batches import Batch, iter_batches, iter_records
from storage.records.builder import ANY_PRODUCER, BatchBuilder, ProducerInfo
from storage.records.errors import (
    RecordTooLargeError,
    UnsupportedCodecError,
    UnsupportedForMessageFormatError,
)
from storage.records.layout import (
    MAGIC_2,
    MAGIC_POSITION,
    NO_LEADER_EPOCH,
    Buffer,
    Codec,
    TimestampType,
)
from storage.records.legacy_builder import LegacyBuilder
from storage.records.record import Record


class BatchFormat(NamedTuple):
    """How records are to be written: by a topic's settings, or for an old client."""

    magic: int
    codec: Codec
    log_append_time: int | None = None


class Converted(NamedTuple):
    """Converted bytes, and how many records had to be rewritten for them."""

    data: Buffer
    record_count: int


def build_at(
    records: Iterable[Record],
    first_offset: int,
    target: BatchFormat,
    *,
    producer: ProducerInfo = ANY_PRODUCER,
    leader_epoch: int = NO_LEADER_EPOCH,
    max_bytes: int | None = None,
) -> Converted:
    """Write records into one new batch (or messages), numbered from `first_offset` on.

    Headers are not dropped here: a topic of an older format cannot take them. With `max_bytes`,
    an uncompressed batch that grows beyond it is given up early.
    """
    builder = _builder(target, first_offset, producer, leader_epoch)
    offset = first_offset
    for record in records:
        if record.headers and target.magic < MAGIC_2:
            raise UnsupportedForMessageFormatError(
                f"Record headers cannot be stored in messages of magic {target.magic}"
            )
        _append(builder, record, offset)
        offset += 1
        if max_bytes is not None and target.codec is Codec.NONE and target.magic == MAGIC_2:
            ensure_size(builder.size_in_bytes, max_bytes)
    return Converted(builder.build(), builder.record_count)


def ensure_size(size: int, max_bytes: int) -> None:
    """Refuse a batch larger than max.message.bytes."""
    if size > max_bytes:
        raise RecordTooLargeError(f"A batch of {size} bytes exceeds the largest size {max_bytes}")


def needs_down_conversion(buffer: Buffer, magic: int) -> bool:
    """Whether the first batch in `buffer` is of a later format than a client's `magic`."""
    return len(buffer) > MAGIC_POSITION and buffer[MAGIC_POSITION] > magic


def down_convert(buffer: Buffer, magic: int, first_offset: int = 0) -> Converted:
    """Rewrite the batches of a fetch for a client that knows formats up to `magic`.

    Uncompressed records below `first_offset`, the fetch's own offset, are left out: in the older
    formats each is a message of its own, and clients rely on getting none that they did not ask
    for. Offsets stay what they are. zstd, which no older format knows, raises
    `UnsupportedCodecError`.
    """
    converted = bytearray()
    record_count = 0
    for batch in iter_batches(buffer):
        if batch.header.is_control:
            continue
        if batch.header.codec is Codec.ZSTD:
            raise UnsupportedCodecError(f"Records in zstd cannot be converted to magic {magic}")
        if batch.header.magic <= magic:
            converted += batch.data
            continue
        rewritten = _down_convert_batch(batch, magic, first_offset)
        converted += rewritten.data
        record_count += rewritten.record_count
    return Converted(converted, record_count)


def _down_convert_batch(batch: Batch, magic: int, first_offset: int) -> Converted:
    header = batch.header
    is_compressed = header.codec is not Codec.NONE
    records = [
        record for record in iter_records(batch) if is_compressed or record.offset >= first_offset
    ]
    if not records:
        return Converted(b"", 0)
    log_append_time = None
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        log_append_time = header.max_timestamp
    target = BatchFormat(magic, header.codec, log_append_time)
    builder = _builder(target, records[0].offset, ANY_PRODUCER, NO_LEADER_EPOCH)
    for record in records:
        _append(builder, record, record.offset)
    return Converted(builder.build(), len(records))


def _builder(
    target: BatchFormat, base_offset: int, producer: ProducerInfo, leader_epoch: int
) -> BatchBuilder | LegacyBuilder:
    if target.magic == MAGIC_2:
        return BatchBuilder(
            base_offset=base_offset,
            codec=target.codec,
            log_append_time=target.log_append_time,
            producer=producer,
            leader_epoch=leader_epoch,
        )
    return LegacyBuilder(
        target.magic,
        base_offset=base_offset,
        codec=target.codec,
        log_append_time=target.log_append_time,
    )


def _append(builder: BatchBuilder | LegacyBuilder, record: Record, offset: int) -> None:
    if isinstance(builder, BatchBuilder):
        builder.append(record.timestamp, record.key, record.value, record.headers, offset)
    else:
        builder.append(record.timestamp, record.key, record.value, offset)
