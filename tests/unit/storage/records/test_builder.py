"""Building batches of magic 2: numbering, sizes, flags and what must not be built."""

import pytest

from storage.records import (
    BatchBuilder,
    Codec,
    ProducerInfo,
    TimestampType,
    build_empty_batch,
    build_end_txn_batch,
    is_intact,
    iter_batches,
    iter_records,
    parse_header,
)
from storage.records.control import ControlType, EndTxnMarker, parse_end_txn_marker
from storage.records.errors import UnsupportedCodecError
from storage.records.layout import set_base_offset
from storage.records.legacy_builder import LegacyBuilder


def test_offsets_follow_one_another_from_the_base_offset_on() -> None:
    builder = BatchBuilder(base_offset=5)
    assert [builder.append(0, None, b"") for _ in range(3)] == [5, 6, 7]
    assert builder.append(0, None, b"", offset=10) == 10
    assert builder.append(0, None, b"") == 11
    header = parse_header(builder.build())
    assert (header.base_offset, header.last_offset, header.record_count) == (5, 11, 5)


def test_an_offset_that_does_not_grow_is_refused() -> None:
    builder = BatchBuilder(base_offset=5)
    builder.append(0, None, b"")
    with pytest.raises(ValueError, match="cannot follow"):
        builder.append(0, None, b"", offset=5)
    legacy = LegacyBuilder(1, base_offset=5)
    with pytest.raises(ValueError, match="cannot follow"):
        legacy.append(0, None, b"", offset=4)


def test_size_is_told_before_compression() -> None:
    builder = BatchBuilder()
    for _ in range(100):
        builder.append(1_000, b"key", b"value" * 10, [("h", b"v")])
    assert builder.size_in_bytes == len(builder.build())
    assert builder.record_count == 100


def test_base_timestamp_is_the_first_ones_and_max_timestamp_the_largest() -> None:
    builder = BatchBuilder()
    for timestamp in (500, 900, 100):
        builder.append(timestamp, None, b"")
    header = parse_header(builder.build())
    assert (header.base_timestamp, header.max_timestamp) == (500, 900)


def test_log_append_time_is_the_max_timestamp_and_sets_the_type() -> None:
    builder = BatchBuilder(log_append_time=77)
    builder.append(500, None, b"")
    header = parse_header(builder.build())
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.base_timestamp, header.max_timestamp) == (500, 77)


def test_producer_fields_and_leader_epoch_are_written() -> None:
    builder = BatchBuilder(producer=ProducerInfo(9, 2, 40, is_transactional=True), leader_epoch=3)
    builder.append(0, b"k", b"v")
    header = parse_header(builder.build())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)
    assert header.is_transactional
    assert not header.is_control
    assert header.partition_leader_epoch == 3


@pytest.mark.parametrize("codec", Codec)
def test_a_built_batch_can_be_renumbered_in_place(codec: Codec) -> None:
    builder = BatchBuilder(codec=codec)
    builder.append(0, b"k", b"v" * 500)
    data = builder.build()
    set_base_offset(data, 1234)
    (batch,) = iter_batches(data)
    assert is_intact(batch)
    assert [record.offset for record in iter_records(batch)] == [1234]


def test_compaction_can_keep_a_last_offset_whose_record_is_gone() -> None:
    builder = BatchBuilder(base_offset=0)
    builder.append(0, b"k", b"v", offset=2)
    header = parse_header(builder.build(last_offset=9))
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 9, 1)


def test_an_emptied_batch_keeps_offsets_producer_and_max_timestamp() -> None:
    builder = BatchBuilder(
        base_offset=5,
        codec=Codec.GZIP,
        log_append_time=77,
        producer=ProducerInfo(9, 2, 40, is_transactional=True),
    )
    builder.append(1, b"k", b"v")
    full = parse_header(builder.build())
    empty_data = build_empty_batch(full)
    (empty,) = iter_batches(empty_data)
    assert is_intact(empty)
    assert list(iter_records(empty)) == []
    assert empty.header == full._replace(
        batch_length=49,
        crc=empty.header.crc,
        attributes=full.attributes & ~0x07,
        base_timestamp=-1,
        record_count=0,
    )


def test_a_transaction_marker_is_a_control_batch_of_one_record() -> None:
    data = build_end_txn_batch(123, 9, 2, EndTxnMarker(ControlType.COMMIT, 6))
    (batch,) = iter_batches(data)
    (record,) = iter_records(batch)
    assert batch.header.is_control
    assert batch.header.is_transactional
    assert (batch.header.producer_id, batch.header.producer_epoch) == (9, 2)
    assert batch.header.base_sequence == -1
    assert parse_end_txn_marker(record.key, record.value) == (ControlType.COMMIT, 6)


def test_a_marker_is_refused_by_a_batch_that_is_no_transactional_control_batch() -> None:
    marker = EndTxnMarker(ControlType.ABORT, 0)
    with pytest.raises(ValueError, match="control batch"):
        BatchBuilder().append_end_txn_marker(0, marker)
    with pytest.raises(ValueError, match="control batch"):
        BatchBuilder(is_control=True).append_end_txn_marker(0, marker)


def test_old_formats_cannot_be_built_in_zstd() -> None:
    with pytest.raises(UnsupportedCodecError, match="zstd"):
        LegacyBuilder(1, base_offset=0, codec=Codec.ZSTD)
