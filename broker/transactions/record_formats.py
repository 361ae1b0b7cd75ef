"""The records of `__transaction_state`, in the bytes of Apache Kafka 2.5.

Owns the layouts of keys and values, and the numbers of a transaction's states. A record without a
value deletes its transactional id. Must not know the running broker or how transactions proceed.
"""

from enum import IntEnum
from typing import Final

from broker.versioned_records import MalformedRecordError, decode_versioned, encode_versioned
from network.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string

KEY_VERSION: Final = 0
VALUE_VERSION: Final = 0


class TransactionState(IntEnum):
    """Where a transaction stands, by the number that its records carry."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


class TransactionKey(Message, versions="0"):
    """Which transactional id."""

    transactional_id: str = string()


class TransactionTopic(Struct):
    """Partitions of one topic that take part in a transaction."""

    topic: str = string()
    partitions: list[int] = array(int32)


class TransactionValue(Message, versions="0"):
    """A transactional id's producer and its transaction; without partitions while it is empty."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    timeout_ms: int = int32()
    status: int = int8()
    topics: list[TransactionTopic] | None = array(TransactionTopic, null="0+", default=None)
    last_update_timestamp: int = int64()
    start_timestamp: int = int64()

    @property
    def state(self) -> TransactionState:
        return TransactionState(self.status)


def encode_key(key: TransactionKey) -> bytes:
    return encode_versioned(key, KEY_VERSION)


def decode_key(data: bytes) -> TransactionKey:
    return decode_versioned(TransactionKey, data)


def encode_value(value: TransactionValue) -> bytes:
    """A transaction; one that is empty has no partitions, and says so by null."""
    if value.state is TransactionState.EMPTY and value.topics is not None:
        raise ValueError(f"An empty transaction has no partitions: {value}")
    return encode_versioned(value, VALUE_VERSION)


def decode_value(data: bytes) -> TransactionValue:
    value = decode_versioned(TransactionValue, data)
    try:
        state = value.state
    except ValueError:
        raise MalformedRecordError(f"No transaction has the state {value.status}") from None
    if value.topics is None and state is not TransactionState.EMPTY:
        raise MalformedRecordError(f"A transaction in state {state.name} has no list of partitions")
    return value
