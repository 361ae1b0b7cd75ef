"""Keys and values of records as text: plain, or decoded as the coordinators' records.

Owns how decoded records are written in a line. The layouts are known by the record formats of
groups and transactions.
"""

from collections.abc import Callable
from typing import Final

from broker.dump_log.java_text import decode_text, hexadecimal, quote_json
from broker.groups import consumer_protocol
from broker.groups import record_formats as groups
from broker.transactions import record_formats as transactions
from broker.transactions.record_formats import TransactionState
from broker.versioned_records import MalformedRecordError

# Makes the end of a record's line; raises MalformedRecordError where that cannot be done.
Formatter = Callable[[bytes | None, bytes | None], str]

_DELETED: Final = "<DELETE>"
_STATE_NAMES: Final = {
    state: "".join(word.capitalize() for word in state.name.split("_"))
    for state in TransactionState
}


def format_nothing(_key: bytes | None, _value: bytes | None) -> str:
    return ""


def format_text(key: bytes | None, value: bytes | None) -> str:
    """Key and value as text, each only if there is one."""
    shown_key = "" if key is None else f" key: {decode_text(key)}"
    return shown_key if value is None else f"{shown_key} payload: {decode_text(value)}"


def format_group_record(key: bytes | None, value: bytes | None) -> str:
    """A record of `__consumer_offsets`."""
    if key is None:
        raise MalformedRecordError("A record of a group has no key")
    decoded = groups.decode_key(key)
    if isinstance(decoded, groups.OffsetKey):
        name = f"offset_commit::group={decoded.group},partition={decoded.topic}-{decoded.partition}"
        payload = _DELETED if value is None else _offset(groups.decode_offset_value(value))
    else:
        name = f"group_metadata::group={decoded.group}"
        payload = _DELETED if value is None else _group(groups.decode_group_value(value))
    return f" key: {name} payload: {payload}"


def format_transaction_record(key: bytes | None, value: bytes | None) -> str:
    """A record of `__transaction_state`."""
    if key is None:
        raise MalformedRecordError("A record of a transaction has no key")
    transactional_id = transactions.decode_key(key).transactional_id
    payload = _DELETED if value is None else _transaction(transactions.decode_value(value))
    return f" key: transaction_metadata::transactionalId={transactional_id} payload: {payload}"


def _offset(value: groups.OffsetValue) -> str:
    metadata = f",metadata={value.metadata}" if value.metadata else ""
    return f"offset={value.offset}{metadata}"


def _group(value: groups.GroupValue) -> str:
    is_consumer = value.protocol_type == consumer_protocol.PROTOCOL_TYPE
    show = _consumer_assignment if is_consumer else hexadecimal
    members = ",".join(f"{m.member_id}={show(m.assignment)}" for m in value.members)
    protocol = "null" if value.protocol is None else quote_json(value.protocol)
    return (
        f'{{"protocolType":{quote_json(value.protocol_type)},"protocol":{protocol},'
        f'"generationId":{value.generation},"assignment":{quote_json("{" + members + "}")}}}'
    )


def _consumer_assignment(data: bytes) -> str:
    assignment = consumer_protocol.decode_assignment(data)
    partitions = ", ".join(
        f"{assigned.topic}-{partition}"
        for assigned in assignment.topics
        for partition in assigned.partitions
    )
    user_data = f":{hexadecimal(assignment.user_data)}" if assignment.user_data else ""
    return f"[{partitions}]{user_data}"


def _transaction(value: transactions.TransactionValue) -> str:
    topics = [] if value.state is TransactionState.EMPTY else value.topics or []
    partitions = ",".join(
        f"{taking_part.topic}-{partition}"
        for taking_part in topics
        for partition in taking_part.partitions
    )
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={_STATE_NAMES[value.state]},partitions=[{partitions}],"
        f"txnLastUpdateTimestamp={value.last_update_timestamp},txnTimeoutMs={value.timeout_ms}"
    )
