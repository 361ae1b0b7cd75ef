"""Batches of all magics in one buffer: walked, checked and opened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.records import (
    BatchBuilder,
    Codec,
    Record,
    is_intact,
    iter_batches,
    iter_records,
    parse_header,
)
from storage.records.errors import CorruptRecordError, InvalidRecordError, RecordDataError
from storage.records.layout import (
    BATCH_HEADER_SIZE,
    LENGTH_FIELD,
    LENGTH_POSITION,
    MAGIC_POSITION,
    Buffer,
)
from tests.unit.storage.records.samples import (
    all_records,
    batch_of,
    codecs,
    messages_of,
    numbered,
    record_lists,
)

SAMPLE = numbered([b"a", b"b"], 30)
RECORD_COUNT_POSITION = 57


def mixed() -> bytearray:
    return (
        messages_of(numbered([b"a", b"b"], 10), 0)
        + messages_of(numbered([b"c", b"d"], 20), 1, Codec.GZIP)
        + batch_of(SAMPLE, Codec.LZ4)
        + batch_of(numbered([b"e"], 40))
    )


def test_batches_of_all_magics_are_found_in_one_buffer() -> None:
    batches = list(iter_batches(mixed()))
    assert [batch.header.magic for batch in batches] == [0, 0, 1, 2, 2]
    assert [batch.header.last_offset for batch in batches] == [10, 11, 21, 31, 40]
    assert all(is_intact(batch) for batch in batches)
    assert [record.offset for record in all_records(mixed())] == [10, 11, 20, 21, 30, 31, 40]


def test_the_walk_starts_at_the_given_position() -> None:
    skipped = len(messages_of(numbered([b"a", b"b"], 10), 0))
    assert [batch.header.magic for batch in iter_batches(mixed(), skipped)] == [1, 2, 2]


@pytest.mark.parametrize("as_buffer", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_read(as_buffer: type[bytes | bytearray | memoryview]) -> None:
    buffer: Buffer = as_buffer(bytes(mixed()))
    assert len(list(iter_batches(buffer))) == 5
    assert len(all_records(buffer)) == 7


def test_a_last_batch_that_is_cut_off_is_left_out() -> None:
    whole, cut = batch_of(SAMPLE), batch_of(numbered([b"c"], 32))
    for length in range(len(cut)):
        assert len(list(iter_batches(whole + cut[:length]))) == 1


def test_a_batch_of_an_unknown_magic_is_corrupt() -> None:
    for magic in (3, 127, 255):
        batch = batch_of(SAMPLE)
        batch[MAGIC_POSITION] = magic
        with pytest.raises(CorruptRecordError, match="magic"):
            list(iter_batches(batch))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48])
def test_a_length_below_the_shortest_batch_is_corrupt(length: int) -> None:
    batch = batch_of(SAMPLE)
    LENGTH_FIELD.pack_into(batch, LENGTH_POSITION, length)
    with pytest.raises(CorruptRecordError, match="length"):
        list(iter_batches(batch))


def test_a_header_alone_is_enough_to_parse_it() -> None:
    for data in (batch_of(SAMPLE), messages_of(SAMPLE, 1, Codec.GZIP), messages_of(SAMPLE, 0)):
        assert parse_header(bytes(data[:BATCH_HEADER_SIZE])) == parse_header(data)


def test_a_header_that_ends_before_its_magic_is_corrupt() -> None:
    with pytest.raises(CorruptRecordError, match="before its magic"):
        parse_header(batch_of(SAMPLE)[:16])


def test_records_of_a_log_append_time_batch_have_the_time_of_the_batch() -> None:
    builder = BatchBuilder(log_append_time=99)
    builder.append(1, None, b"a")
    builder.append(2, None, b"b")
    assert [record.timestamp for record in all_records(builder.build())] == [99, 99]


def test_nothing_is_opened_before_the_first_record_is_asked_for() -> None:
    data = batch_of(SAMPLE, Codec.GZIP)
    data[BATCH_HEADER_SIZE:] = bytes(len(data) - BATCH_HEADER_SIZE)
    (batch,) = iter_batches(data)
    records = iter_records(batch)
    with pytest.raises(InvalidRecordError, match="gzip"):
        next(records)


def test_a_negative_record_count_is_refused() -> None:
    data = batch_of(SAMPLE)
    LENGTH_FIELD.pack_into(data, RECORD_COUNT_POSITION, -1)
    with pytest.raises(InvalidRecordError, match="-1 records"):
        all_records(data)


@given(record_lists(), codecs)
def test_batches_are_read_as_they_were_built(records: list[Record], codec: Codec) -> None:
    data = batch_of(records, codec)
    (batch,) = iter_batches(data)
    assert is_intact(batch)
    assert list(iter_records(batch)) == records
    assert batch.header.base_offset == records[0].offset
    assert batch.header.last_offset == records[-1].offset
    assert batch.header.max_timestamp == max(record.timestamp for record in records)


@given(record_lists(), codecs, st.data())
def test_a_flipped_bit_behind_the_magic_shows_in_the_checksum(
    records: list[Record], codec: Codec, data: st.DataObject
) -> None:
    damaged = batch_of(records, codec)
    position = data.draw(st.integers(MAGIC_POSITION + 1, len(damaged) - 1))
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    (batch,) = iter_batches(damaged)
    assert not is_intact(batch)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_raise_record_errors_only(data: bytes) -> None:
    try:
        records = all_records(data)
    except RecordDataError:
        return
    assert isinstance(records, list)
