"""Records of magic 2 on their own: what is written is read, what is broken is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.records.errors import InvalidRecordError
from storage.records.record import Record, encode_record, iter_encoded_records
from storage.records.varint import encode_varint
from tests.unit.storage.records.samples import record_lists


def encode(records: list[Record]) -> bytes:
    first = records[0]
    return b"".join(
        encode_record(
            record.offset - first.offset,
            record.timestamp - first.timestamp,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    )


def read(data: bytes, count: int = 1) -> list[Record]:
    return list(iter_encoded_records(data, count, 0, 0))


def framed(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


@given(record_lists())
def test_records_are_read_as_they_were_written(records: list[Record]) -> None:
    first = records[0]
    data = encode(records)
    assert list(iter_encoded_records(data, len(records), first.offset, first.timestamp)) == records


@given(record_lists(), st.data())
def test_records_cut_anywhere_are_refused(records: list[Record], data: st.DataObject) -> None:
    encoded = encode(records)
    length = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(InvalidRecordError):
        read(encoded[:length], len(records))


@given(st.binary(max_size=300), st.integers(1, 5))
def test_arbitrary_bytes_are_records_or_refused(data: bytes, count: int) -> None:
    try:
        records = read(data, count)
    except InvalidRecordError:
        return
    assert len(records) == count


def test_records_come_one_by_one_before_later_ones_are_parsed() -> None:
    records = iter_encoded_records(encode_record(0, 0, b"k", b"v") + b"\xff", 2, 0, 0)
    assert next(records) == Record(0, 0, b"k", b"v")
    with pytest.raises(InvalidRecordError):
        next(records)


def test_bytes_after_the_declared_records_are_refused() -> None:
    one = encode_record(0, 0, b"k", b"v")
    with pytest.raises(InvalidRecordError, match="bytes are left"):
        read(one + one, 1)


def test_a_record_longer_than_its_fields_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="miss its end"):
        read(framed(b"\x00\x00\x00\x01\x01\x00" + b"surplus"))


def test_a_value_longer_than_its_record_is_refused() -> None:
    body = b"\x00\x00\x00\x01" + encode_varint(1000) + b"v\x00"
    with pytest.raises(InvalidRecordError):
        read(framed(body) + bytes(2000))


@pytest.mark.parametrize("count", [-1, 2**31 - 1])
def test_an_impossible_number_of_headers_is_refused(count: int) -> None:
    with pytest.raises(InvalidRecordError, match="headers"):
        read(framed(b"\x00\x00\x00\x01\x01" + encode_varint(count)))


def test_a_header_without_key_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="no key"):
        read(framed(b"\x00\x00\x00\x01\x01\x02" + encode_varint(-1) + encode_varint(-1)))


def test_any_negative_length_means_null() -> None:
    body = b"\x00\x00\x00" + encode_varint(-7) + encode_varint(-2) + b"\x00"
    assert read(framed(body)) == [Record(0, 0, None, None)]


def test_a_header_key_that_is_not_utf8_is_read_with_replacements() -> None:
    body = b"\x00\x00\x00\x01\x01\x02" + encode_varint(2) + b"\xffk" + encode_varint(-1)
    assert read(framed(body))[0].headers == (("\ufffdk", None),)
