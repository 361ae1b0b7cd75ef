"""Keys and values of records, written as kafka-dump-log writes them."""

import pytest

from broker.dump_log.payloads import (
    Formatter,
    format_group_record,
    format_text,
    format_transaction_record,
)
from broker.groups.record_formats import (
    GroupKey,
    GroupMember,
    GroupValue,
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from broker.transactions.record_formats import (
    TransactionKey,
    TransactionState,
    TransactionTopic,
    TransactionValue,
    encode_key,
    encode_value,
)
from broker.versioned_records import MalformedRecordError

OFFSET_KEY = encode_offset_key(OffsetKey(group="g", topic="t", partition=3))
GROUP_KEY = encode_group_key(GroupKey(group="g"))
TRANSACTION_KEY = encode_key(TransactionKey(transactional_id="x"))
ASSIGNMENT = bytes.fromhex("0000 00000001 0001 74 00000002 00000000 00000003")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (None, None, ""),
        (b"", b"", " key:  payload: "),
        (b"k", None, " key: k"),
        (None, b"v\xff", " payload: v\ufffd"),
    ],
)
def test_text_is_shown_where_there_is_any(
    key: bytes | None, value: bytes | None, expected: str
) -> None:
    assert format_text(key, value) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"), [("", "offset=5"), ("m,n", "offset=5,metadata=m,n")]
)
def test_a_committed_offset_is_shown(metadata: str, expected: str) -> None:
    value = encode_offset_value(OffsetValue(offset=5, metadata=metadata))
    shown = format_group_record(OFFSET_KEY, value)
    assert shown == f" key: offset_commit::group=g,partition=t-3 payload: {expected}"


@pytest.mark.parametrize(
    ("user_data", "shown_user_data"), [("ffffffff", ""), ("00000000", ""), ("00000002 00ab", ":AB")]
)
def test_a_group_of_consumers_is_shown_with_their_partitions(
    user_data: str, shown_user_data: str
) -> None:
    assignment = ASSIGNMENT + bytes.fromhex(user_data)
    members = [GroupMember(member_id=name, assignment=assignment) for name in ("a", 'b"')]
    group = GroupValue(protocol_type="consumer", generation=4, protocol="range", members=members)
    assert format_group_record(GROUP_KEY, encode_group_value(group)) == (
        ' key: group_metadata::group=g payload: {"protocolType":"consumer","protocol":"range",'
        f'"generationId":4,"assignment":"{{a=[t-0, t-3]{shown_user_data},'
        f'b\\"=[t-0, t-3]{shown_user_data}}}"}}'
    )


def test_a_group_of_others_is_shown_with_their_bytes() -> None:
    member = GroupMember(member_id="a", assignment=b"\x0f\x10")
    group = GroupValue(protocol_type="connect", generation=1, members=[member])
    assert format_group_record(GROUP_KEY, encode_group_value(group)).endswith(
        '{"protocolType":"connect","protocol":null,"generationId":1,"assignment":"{a=F10}"}'
    )


def test_a_transaction_is_shown_with_its_partitions() -> None:
    value = TransactionValue(
        producer_id=1,
        producer_epoch=2,
        timeout_ms=3,
        status=TransactionState.PREPARE_EPOCH_FENCE,
        topics=[
            TransactionTopic(topic="t", partitions=[0, 1]),
            TransactionTopic(topic="u", partitions=[7]),
        ],
        last_update_timestamp=8,
        start_timestamp=9,
    )
    assert format_transaction_record(TRANSACTION_KEY, encode_value(value)) == (
        " key: transaction_metadata::transactionalId=x payload: producerId:1,producerEpoch:2,"
        "state=PrepareEpochFence,partitions=[t-0,t-1,u-7],txnLastUpdateTimestamp=8,txnTimeoutMs=3"
    )


def test_a_record_without_a_value_deletes() -> None:
    assert format_group_record(OFFSET_KEY, None).endswith(" payload: <DELETE>")
    assert format_group_record(GROUP_KEY, None).endswith(" payload: <DELETE>")
    assert format_transaction_record(TRANSACTION_KEY, None).endswith(" payload: <DELETE>")


@pytest.mark.parametrize("formatter", [format_group_record, format_transaction_record])
@pytest.mark.parametrize("key", [None, b"", b"\x7f\xff"])
def test_records_of_something_else_are_refused(formatter: Formatter, key: bytes | None) -> None:
    with pytest.raises(MalformedRecordError):
        formatter(key, None)
