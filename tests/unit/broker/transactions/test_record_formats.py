"""The records of `__transaction_state`: Kafka's bytes are read and written again, byte for byte."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.transactions.record_formats import (
    TransactionKey,
    TransactionState,
    TransactionTopic,
    TransactionValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from broker.versioned_records import MalformedRecordError, UnknownRecordVersionError
from tests.unit.broker.coordinator_logs import RELEASES, coordinator_records
from tests.unit.broker.groups.strategies import int32s, int64s, texts


@st.composite
def transaction_values(draw: st.DrawFn) -> TransactionValue:
    state = draw(st.sampled_from(TransactionState))
    topics = st.builds(TransactionTopic, topic=texts, partitions=st.lists(int32s, max_size=4))
    return TransactionValue(
        producer_id=draw(int64s),
        producer_epoch=draw(st.integers(-(2**15), 2**15 - 1)),
        timeout_ms=draw(int32s),
        status=state,
        topics=None if state is TransactionState.EMPTY else draw(st.lists(topics, max_size=3)),
        last_update_timestamp=draw(int64s),
        start_timestamp=draw(int64s),
    )


def test_a_key_has_the_bytes_of_kafka() -> None:
    assert encode_key(TransactionKey(transactional_id="tx")) == b"\0\0\0\x02tx"


def test_a_value_has_the_bytes_of_kafka() -> None:
    value = TransactionValue(
        producer_id=1,
        producer_epoch=2,
        timeout_ms=3,
        status=TransactionState.PREPARE_ABORT,
        topics=[TransactionTopic(topic="t", partitions=[4, 5])],
        last_update_timestamp=6,
        start_timestamp=7,
    )
    assert encode_value(value) == (
        b"\0\0" + (1).to_bytes(8) + b"\0\x02" + b"\0\0\0\x03" + b"\x03"
        + b"\0\0\0\x01" + b"\0\x01t" + b"\0\0\0\x02" + b"\0\0\0\x04" + b"\0\0\0\x05"
        + (6).to_bytes(8) + (7).to_bytes(8)
    )  # fmt: skip


def test_an_empty_transaction_has_null_for_its_partitions() -> None:
    encoded = encode_value(TransactionValue(producer_id=1))
    assert encoded[17:21] == b"\xff\xff\xff\xff"
    with pytest.raises(ValueError, match="no partitions"):
        encode_value(TransactionValue(producer_id=1, topics=[]))


@given(texts)
def test_keys_are_read_as_they_were_written(transactional_id: str) -> None:
    key = TransactionKey(transactional_id=transactional_id)
    assert decode_key(encode_key(key)) == key


@given(transaction_values())
def test_values_are_read_as_they_were_written(value: TransactionValue) -> None:
    decoded = decode_value(encode_value(value))
    assert decoded == value
    assert decoded.state is TransactionState(value.status)


@given(transaction_values(), st.data())
def test_values_cut_anywhere_are_refused(value: TransactionValue, data: st.DataObject) -> None:
    encoded = encode_value(value)
    with pytest.raises(MalformedRecordError):
        decode_value(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@pytest.mark.parametrize("decode", [decode_key, decode_value])
@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(decode: Callable[[bytes], object], data: bytes) -> None:
    try:
        decode(data)
    except MalformedRecordError:
        return


@pytest.mark.parametrize("decode", [decode_key, decode_value])
def test_an_unknown_version_is_told_apart(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(UnknownRecordVersionError, match="version 1"):
        decode(b"\0\x01")


def test_an_unknown_state_is_refused() -> None:
    encoded = bytearray(encode_value(TransactionValue()))
    encoded[16] = 8
    with pytest.raises(MalformedRecordError, match="state 8"):
        decode_value(bytes(encoded))


def test_a_transaction_that_is_not_empty_must_list_its_partitions() -> None:
    encoded = bytearray(encode_value(TransactionValue()))
    encoded[16] = TransactionState.ONGOING
    with pytest.raises(MalformedRecordError, match="ONGOING"):
        decode_value(bytes(encoded))


@pytest.mark.parametrize("release", RELEASES)
def test_what_kafka_wrote_is_written_again_byte_for_byte(release: str) -> None:
    records = coordinator_records(release, "__transaction_state-0")
    states = set()
    for key, value in records:
        assert encode_key(decode_key(key)) == key
        if value is not None:
            decoded = decode_value(value)
            assert encode_value(decoded) == value
            states.add(decoded.state)
    assert states == set(TransactionState) - {
        TransactionState.DEAD,
        TransactionState.PREPARE_EPOCH_FENCE,
    }
