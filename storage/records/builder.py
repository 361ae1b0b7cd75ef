"""Writing batches of magic 2: what the broker itself appends, and what it rebuilds.

Owns the assembly of records into bytes, compression included. Offsets, timestamps and producer
fields are written as the caller gives them; must not know logs, rules or settings.
"""

from collections.abc import Sequence
from typing import NamedTuple

from storage.checksums import crc32c
from storage.records.compression import compress
from storage.records.control import EndTxnMarker, encode_end_txn_marker
from storage.records.layout import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CONTROL_FLAG,
    CRC_FIELD,
    CRC_POSITION,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_2,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Codec,
    TimestampType,
)
from storage.records.record import RecordHeader, encode_record


class ProducerInfo(NamedTuple):
    """Who wrote a batch; the default is a producer without idempotence."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False


ANY_PRODUCER = ProducerInfo()


class BatchBuilder:
    """Collects records and builds one batch of magic 2 from them.

        builder = BatchBuilder(codec=Codec.LZ4)
        builder.append(now_ms, b"key", b"value", [("trace", b"7")])
        payload = builder.build()          # a bytearray: offsets can be patched in place

    With `log_append_time` the batch is of that timestamp type and time; records keep their own
    deltas, as Kafka writes it.
    """

    __slots__ = (
        "_attributes",
        "_base_timestamp",
        "_encoded",
        "_max_timestamp",
        "base_offset",
        "codec",
        "last_offset",
        "leader_epoch",
        "log_append_time",
        "producer",
        "record_count",
        "size_in_bytes",
    )

    def __init__(
        self,
        *,
        base_offset: int = 0,
        codec: Codec = Codec.NONE,
        log_append_time: int | None = None,
        producer: ProducerInfo = ANY_PRODUCER,
        is_control: bool = False,
        leader_epoch: int = NO_LEADER_EPOCH,
    ) -> None:
        self.base_offset = base_offset
        self.codec = codec
        self.log_append_time = log_append_time
        self.producer = producer
        self.leader_epoch = leader_epoch
        self.last_offset = base_offset - 1
        self.record_count = 0
        self.size_in_bytes = BATCH_HEADER_SIZE
        self._attributes = _attributes(
            codec, log_append_time is not None, producer.is_transactional, is_control
        )
        self._base_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP
        self._encoded: list[bytes] = []

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[RecordHeader] = (),
        offset: int | None = None,
    ) -> int:
        """Add a record at `offset` (by default the next one) and return that offset.

        `size_in_bytes` grows by what the record takes before compression.
        """
        if offset is None:
            offset = self.last_offset + 1
        elif offset <= self.last_offset:
            raise ValueError(f"Offset {offset} cannot follow offset {self.last_offset}")
        if not self.record_count:
            self._base_timestamp = timestamp
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        encoded = encode_record(
            offset - self.base_offset, timestamp - self._base_timestamp, key, value, headers
        )
        self._encoded.append(encoded)
        self.record_count += 1
        self.last_offset = offset
        self.size_in_bytes += len(encoded)
        return offset

    def append_end_txn_marker(self, timestamp: int, marker: EndTxnMarker) -> int:
        """Add the control record that ends a transaction; the batch must be a control batch."""
        if not self._attributes & CONTROL_FLAG or not self._attributes & TRANSACTIONAL_FLAG:
            raise ValueError("A transaction marker needs a transactional control batch")
        return self.append(timestamp, *encode_end_txn_marker(marker))

    def build(self, last_offset: int | None = None) -> bytearray:
        """The batch. Compaction passes `last_offset`, which a removed record may have had."""
        if last_offset is None:
            last_offset = self.last_offset
        records = compress(self.codec, b"".join(self._encoded))
        header = BatchHeader(
            base_offset=self.base_offset,
            batch_length=BATCH_HEADER_SIZE - LOG_OVERHEAD + len(records),
            partition_leader_epoch=self.leader_epoch,
            magic=MAGIC_2,
            crc=0,
            attributes=self._attributes,
            last_offset_delta=last_offset - self.base_offset,
            base_timestamp=self._base_timestamp,
            max_timestamp=(
                self._max_timestamp if self.log_append_time is None else self.log_append_time
            ),
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            base_sequence=self.producer.base_sequence,
            record_count=self.record_count,
        )
        return seal_batch(header, records)


def build_end_txn_batch(
    timestamp: int, producer_id: int, producer_epoch: int, marker: EndTxnMarker
) -> bytearray:
    """The control batch that a transaction coordinator has appended to a partition."""
    builder = BatchBuilder(
        producer=ProducerInfo(producer_id, producer_epoch, NO_SEQUENCE, is_transactional=True),
        is_control=True,
    )
    builder.append_end_txn_marker(timestamp, marker)
    return builder.build()


def build_empty_batch(header: BatchHeader) -> bytearray:
    """What compaction leaves of a batch that lost all records but still tells producer state."""
    return seal_batch(
        header._replace(
            batch_length=BATCH_HEADER_SIZE - LOG_OVERHEAD,
            attributes=_attributes(
                Codec.NONE,
                header.timestamp_type is TimestampType.LOG_APPEND_TIME,
                header.is_transactional,
                header.is_control,
            ),
            base_timestamp=NO_TIMESTAMP,
            record_count=0,
        ),
        b"",
    )


def seal_batch(header: BatchHeader, records: bytes) -> bytearray:
    """The batch of a header and its (compressed) records, with the right checksum."""
    batch = bytearray(BATCH_HEADER.pack(*header))
    batch += records
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    CRC_FIELD.pack_into(batch, CRC_POSITION, crc)
    return batch


def _attributes(
    codec: Codec, is_log_append_time: bool, is_transactional: bool, is_control: bool
) -> int:
    return (
        int(codec)
        | (LOG_APPEND_TIME_FLAG if is_log_append_time else 0)
        | (TRANSACTIONAL_FLAG if is_transactional else 0)
        | (CONTROL_FLAG if is_control else 0)
    )
