"""The header of a magic 2 batch, read and patched in place, against kafka-python's writer."""

import pytest
from kafka.record.default_records import (
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
)

from storage.records import layout
from storage.records.errors import CorruptRecordError, UnsupportedCodecError
from storage.records.layout import (
    BATCH_HEADER_SIZE,
    BatchHeader,
    Codec,
    TimestampType,
    parse_batch_header,
    set_base_offset,
    set_leader_epoch,
)


def batch_by_kafka_python(*, transactional: bool = False, codec: int = 0) -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=4711,
        producer_epoch=3,
        base_sequence=90,
        batch_size=100_000,
    )
    for index in range(5):
        builder.append(index, 1_000 + index, b"key", b"value" * 20, [])
    return bytearray(builder.build())


def header_with(**fields: int) -> BatchHeader:
    return parse_batch_header(batch_by_kafka_python())._replace(**fields)


def test_header_is_61_bytes_and_its_fields_lie_where_the_constants_say() -> None:
    assert BATCH_HEADER_SIZE == 61
    batch = batch_by_kafka_python()
    header = parse_batch_header(batch)
    assert batch[layout.MAGIC_POSITION] == 2
    assert layout.CRC_FIELD.unpack_from(batch, layout.CRC_POSITION) == (header.crc,)
    assert layout.ATTRIBUTES_FIELD.unpack_from(batch, layout.ATTRIBUTES_POSITION) == (0,)
    assert layout.TIMESTAMP_FIELD.unpack_from(batch, layout.MAX_TIMESTAMP_POSITION) == (1_004,)


def test_header_written_by_kafka_python_is_read_field_by_field() -> None:
    batch = batch_by_kafka_python(transactional=True, codec=1)
    set_base_offset(batch, 1_000_000)
    set_leader_epoch(batch, 12)
    header = parse_batch_header(batch)
    assert header.size_in_bytes == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (
        1_000_000,
        1_000_004,
        1_000_005,
    )
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_004)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, 90)
    assert header.partition_leader_epoch == 12
    assert header.record_count == 5
    assert header.codec is Codec.GZIP
    assert header.is_transactional
    assert not header.is_control
    assert header.has_producer_id
    assert header.timestamp_type is TimestampType.CREATE_TIME


def test_patching_offset_and_epoch_keeps_the_crc_right() -> None:
    batch = batch_by_kafka_python()
    set_base_offset(batch, 2**40)
    set_leader_epoch(batch, 77)
    assert DefaultRecordBatch(batch).validate_crc()


def test_patches_go_to_the_batch_at_the_given_position() -> None:
    first, second = batch_by_kafka_python(), batch_by_kafka_python()
    both = bytearray(first + second)
    set_base_offset(memoryview(both), 99, len(first))
    set_leader_epoch(memoryview(both), 7, len(first))
    assert both[: len(first)] == first
    header = parse_batch_header(memoryview(both), len(first))
    assert (header.base_offset, header.partition_leader_epoch) == (99, 7)


def test_flags_of_control_and_log_append_time_are_told() -> None:
    header = header_with(attributes=layout.CONTROL_FLAG | layout.LOG_APPEND_TIME_FLAG)
    assert header.is_control
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME


def test_last_sequence_wraps_to_zero_after_the_largest_int() -> None:
    assert header_with(base_sequence=2**31 - 1).last_sequence == 3
    assert header_with(base_sequence=10).last_sequence == 14
    assert header_with(base_sequence=-1).last_sequence == -1


def test_unknown_codec_number_is_refused() -> None:
    with pytest.raises(UnsupportedCodecError, match="codec 6"):
        _ = header_with(attributes=6).codec


def test_a_short_buffer_is_a_corrupt_record() -> None:
    with pytest.raises(CorruptRecordError, match="60 bytes available"):
        parse_batch_header(bytes(60))
    with pytest.raises(CorruptRecordError, match="0 bytes available"):
        parse_batch_header(bytes(60), 100)


def test_another_magic_is_a_corrupt_record() -> None:
    batch = batch_by_kafka_python()
    batch[layout.MAGIC_POSITION] = 1
    with pytest.raises(CorruptRecordError, match="found magic 1"):
        parse_batch_header(batch)
