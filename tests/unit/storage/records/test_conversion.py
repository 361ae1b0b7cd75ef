"""Conversion between formats and codecs: what is kept, what is lost, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.records import BatchBuilder, Codec, ProducerInfo, Record, is_intact, iter_batches
from storage.records.builder import build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.conversion import (
    BatchFormat,
    build_at,
    down_convert,
    needs_down_conversion,
)
from storage.records.errors import (
    RecordTooLargeError,
    UnsupportedCodecError,
    UnsupportedForMessageFormatError,
)
from storage.records.layout import TimestampType
from tests.unit.storage.records.samples import (
    all_records,
    batch_of,
    codecs,
    legacy_codecs,
    messages_of,
    numbered,
    record_lists,
)

MARKER = build_end_txn_batch(0, 9, 0, EndTxnMarker(ControlType.COMMIT, 0))


@given(record_lists(), legacy_codecs, st.sampled_from([0, 1]))
def test_down_conversion_keeps_all_but_headers_and_in_magic_0_timestamps(
    records: list[Record], codec: Codec, magic: int
) -> None:
    converted = down_convert(batch_of(records, codec), magic)
    expected = [record._replace(headers=()) for record in records]
    if magic == 0:
        expected = [record._replace(timestamp=-1) for record in expected]
    assert all_records(converted.data) == expected
    assert converted.record_count == len(records)
    for batch in iter_batches(converted.data):
        assert is_intact(batch)
        assert batch.header.magic == magic
        assert batch.header.codec is codec


def test_records_before_the_fetch_offset_are_left_out_unless_compressed() -> None:
    records = numbered([b"a", b"b", b"c"], 10)
    plain = down_convert(batch_of(records), 1, first_offset=11)
    assert [record.offset for record in all_records(plain.data)] == [11, 12]
    wrapped = down_convert(batch_of(records, Codec.GZIP), 1, first_offset=11)
    assert [record.offset for record in all_records(wrapped.data)] == [10, 11, 12]
    assert down_convert(batch_of(records), 1, first_offset=13) == (b"", 0)


def test_batches_that_the_client_can_read_are_passed_on_as_they_are() -> None:
    old = messages_of(numbered([b"a"], 5), 0, Codec.LZ4)
    new = batch_of(numbered([b"b"], 6))
    converted = down_convert(old + new, 1)
    assert converted.data[: len(old)] == old
    assert converted.record_count == 1


def test_control_batches_are_left_out() -> None:
    records = numbered([b"a"])
    converted = down_convert(MARKER + batch_of(records) + MARKER, 1)
    assert all_records(converted.data) == records


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    batch = batch_of(numbered([b"a"]))
    assert down_convert(batch + batch[:-1], 1).record_count == 1


def test_zstd_cannot_be_down_converted() -> None:
    with pytest.raises(UnsupportedCodecError, match="zstd"):
        down_convert(batch_of(numbered([b"a"]), Codec.ZSTD), 1)


def test_log_append_time_is_kept_as_type_and_time() -> None:
    builder = BatchBuilder(log_append_time=99)
    builder.append(1, b"k", b"v")
    (batch,) = iter_batches(down_convert(builder.build(), 1).data)
    assert batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.header.max_timestamp == 99


@pytest.mark.parametrize(("magic", "expected"), [(0, True), (1, True), (2, False)])
def test_need_of_down_conversion_is_seen_in_the_first_batch(magic: int, expected: bool) -> None:
    assert needs_down_conversion(batch_of(numbered([b"a"])), magic) is expected
    assert not needs_down_conversion(b"", magic)


@given(record_lists(with_headers=False), codecs, st.integers(0, 2**40))
def test_records_are_rebuilt_in_magic_2_at_new_offsets(
    records: list[Record], codec: Codec, first_offset: int
) -> None:
    producer = ProducerInfo(7, 1, 30, is_transactional=True)
    built = build_at(
        records, first_offset, BatchFormat(2, codec), producer=producer, leader_epoch=4
    )
    (batch,) = iter_batches(built.data)
    assert is_intact(batch)
    assert batch.header.codec is codec
    assert batch.header.partition_leader_epoch == 4
    assert (batch.header.producer_id, batch.header.base_sequence) == (7, 30)
    assert batch.header.is_transactional
    assert all_records(built.data) == [
        record._replace(offset=first_offset + index) for index, record in enumerate(records)
    ]


@given(record_lists(with_headers=False), legacy_codecs)
def test_up_conversion_from_magic_1_keeps_records(records: list[Record], codec: Codec) -> None:
    source = all_records(messages_of(records, 1, codec))
    built = build_at(source, records[0].offset, BatchFormat(2, codec))
    assert all_records(built.data) == records


def test_a_topic_of_an_old_format_cannot_take_headers() -> None:
    record = Record(0, 0, None, b"v", (("h", b"x"),))
    with pytest.raises(UnsupportedForMessageFormatError, match="headers"):
        build_at([record], 0, BatchFormat(1, Codec.NONE))


def test_a_batch_that_grows_beyond_the_limit_is_given_up_before_all_records_are_read() -> None:
    records = iter([Record(0, 0, None, bytes(100))] * 1000)
    with pytest.raises(RecordTooLargeError, match="exceeds"):
        build_at(records, 0, BatchFormat(2, Codec.NONE), max_bytes=500)
    assert len(list(records)) > 990
