"""Messages of magic 0 and 1, plain and in wrappers, as clients and brokers number them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.records import Codec, Record, TimestampType, is_intact, iter_batches, iter_records
from storage.records.compression import compress
from storage.records.errors import CorruptRecordError, InvalidRecordError, RecordDataError
from storage.records.layout import set_base_offset
from storage.records.legacy import (
    UNKNOWN_RECORD_COUNT,
    encode_message,
    parse_message_header,
    read_messages,
    set_message_timestamp,
)
from tests.unit.storage.records.samples import (
    LEGACY_CODECS,
    all_records,
    legacy_codecs,
    messages_of,
    numbered,
    record_lists,
)

WRAPPING_CODECS = LEGACY_CODECS[1:]


def wrapper(magic: int, inner: bytes, offset: int = 0, codec: Codec = Codec.GZIP) -> bytes:
    return encode_message(magic, offset, 1_000, None, compress(codec, inner, magic), codec)


@given(record_lists(with_headers=False), legacy_codecs)
def test_magic_1_keeps_offsets_and_timestamps_in_any_codec(
    records: list[Record], codec: Codec
) -> None:
    data = messages_of(records, 1, codec)
    assert all_records(data) == records
    assert all(is_intact(batch) for batch in iter_batches(data))


@given(record_lists(with_headers=False), legacy_codecs)
def test_magic_0_keeps_offsets_and_has_no_timestamps(records: list[Record], codec: Codec) -> None:
    data = messages_of(records, 0, codec)
    assert all_records(data) == [record._replace(timestamp=-1) for record in records]


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_are_batches_of_one_record_each(magic: int) -> None:
    batches = list(iter_batches(messages_of(numbered([b"a", b"b"], 7), magic)))
    assert [batch.header.base_offset for batch in batches] == [7, 8]
    assert [batch.header.next_offset for batch in batches] == [8, 9]
    assert {batch.header.record_count for batch in batches} == {1}


@pytest.mark.parametrize("codec", WRAPPING_CODECS)
def test_a_wrapper_is_one_batch_known_by_its_last_offset(codec: Codec) -> None:
    (batch,) = iter_batches(messages_of(numbered([b"a", b"b", b"c"], 7), 1, codec))
    assert batch.header.last_offset == 9
    assert batch.header.codec is codec
    assert batch.header.max_timestamp == 2_000
    assert batch.header.record_count == UNKNOWN_RECORD_COUNT


def test_inner_offsets_follow_the_wrapper_when_a_broker_renumbers_it() -> None:
    data = messages_of(numbered([b"a", b"b", b"c"]), 1, Codec.LZ4)
    set_base_offset(data, 502)
    assert [record.offset for record in all_records(data)] == [500, 501, 502]


def test_offsets_with_gaps_survive_in_a_wrapper() -> None:
    inner = b"".join(encode_message(1, offset, 0, None, b"") for offset in (0, 3, 9))
    data = wrapper(1, inner, offset=109)
    assert [record.offset for record in all_records(data)] == [100, 103, 109]


def test_a_produced_wrapper_with_offset_zero_is_read_from_zero() -> None:
    inner = b"".join(encode_message(1, offset, 0, None, b"") for offset in (0, 1))
    assert [record.offset for record in all_records(wrapper(1, inner, offset=0))] == [0, 1]


def test_a_wrapper_below_its_last_inner_offset_is_refused() -> None:
    inner = b"".join(encode_message(1, offset, 0, None, b"") for offset in (0, 5))
    with pytest.raises(InvalidRecordError, match="below"):
        all_records(wrapper(1, inner, offset=3))


def test_log_append_time_of_a_wrapper_is_that_of_all_its_messages() -> None:
    data = messages_of(numbered([b"a", b"b"]), 1, Codec.SNAPPY)
    set_message_timestamp(data, 77_777, TimestampType.LOG_APPEND_TIME)
    (batch,) = iter_batches(data)
    assert is_intact(batch)
    assert batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.header.codec is Codec.SNAPPY
    assert [record.timestamp for record in iter_records(batch)] == [77_777, 77_777]


def test_messages_of_magic_0_have_no_timestamp_type() -> None:
    header = parse_message_header(encode_message(0, 5, 0, b"k", b"v"))
    assert header.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert header.max_timestamp == -1


def test_unknown_attribute_bits_are_not_taken_for_flags_of_magic_2() -> None:
    header = parse_message_header(encode_message(1, 5, 0, b"k", b"v", 0x70))
    assert not header.is_control
    assert not header.is_transactional


def test_inner_message_with_a_wrong_crc_is_told_apart() -> None:
    inner = bytearray(encode_message(1, 0, 0, b"k", b"v"))
    inner[-1] ^= 1
    inner += encode_message(1, 1, 0, b"k", b"v")
    data = wrapper(1, bytes(inner), offset=1)
    messages = read_messages(data, parse_message_header(data))
    assert [message.is_intact for message in messages] == [False, True]


def test_an_inner_message_that_is_cut_off_ends_the_wrapper_quietly() -> None:
    whole = encode_message(1, 0, 0, b"k", b"v")
    assert len(all_records(wrapper(1, whole + whole[:20]))) == 1


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (b"", "no messages"),
        (bytes(12), "length of 0"),
        (encode_message(1, 0, 0, b"k", b"v")[:20], "no messages"),
    ],
)
def test_a_wrapper_without_messages_is_refused(inner: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecordError, match=reason):
        all_records(wrapper(1, inner))


def test_a_wrapper_without_value_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="no value"):
        all_records(encode_message(1, 0, 0, None, None, Codec.GZIP))


def test_zstd_is_refused_in_old_formats() -> None:
    with pytest.raises(InvalidRecordError, match="zstd"):
        all_records(encode_message(1, 0, 0, None, b"", Codec.ZSTD))


def test_a_key_longer_than_its_message_is_refused() -> None:
    message = bytearray(encode_message(0, 0, 0, b"key", b"value"))
    message[18:22] = (1000).to_bytes(4)
    with pytest.raises(InvalidRecordError, match="key or value"):
        all_records(message)


def test_a_value_longer_than_its_message_is_refused() -> None:
    message = bytearray(encode_message(0, 0, 0, None, b"value"))
    message[22:26] = (6).to_bytes(4)
    with pytest.raises(InvalidRecordError, match="1 bytes past"):
        all_records(message)


def test_a_header_that_is_cut_off_is_a_corrupt_record() -> None:
    with pytest.raises(CorruptRecordError):
        parse_message_header(encode_message(1, 0, 0, None, None)[:20])
    with pytest.raises(CorruptRecordError, match="magic 2"):
        parse_message_header(bytes(16) + b"\x02" + bytes(40))


@given(record_lists(with_headers=False), st.sampled_from([0, 1]), legacy_codecs, st.data())
def test_damaged_messages_raise_record_errors_only(
    records: list[Record], magic: int, codec: Codec, data: st.DataObject
) -> None:
    damaged = messages_of(records, magic, codec)
    position = data.draw(st.integers(0, len(damaged) - 1))
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        batches = list(iter_batches(damaged))
        for batch in batches:
            list(iter_records(batch))
    except RecordDataError:
        return
    # Offset and length lie outside of the CRC; whatever else is hit shows in it.
    is_outside_crc = any(
        0 <= position - start < 12 for start in _starts(messages_of(records, magic, codec))
    )
    assert is_outside_crc or not all(is_intact(batch) for batch in batches)


def _starts(data: bytearray) -> list[int]:
    starts, position = [], 0
    for batch in iter_batches(data):
        starts.append(position)
        position += batch.header.size_in_bytes
    return starts
