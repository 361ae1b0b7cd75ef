"""The single checks that validation is made of: batches by their headers, records one by one.

Owns what makes a batch or a record unacceptable, and the wording of it. Knows no offsets to
assign and patches nothing; `storage.validation` puts the checks in order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from storage.append_info import AppendOrigin
from storage.log_config import LogConfig
from storage.records.batches import Batch, is_intact, iter_batches, iter_records
from storage.records.conversion import ensure_size
from storage.records.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordFault,
    UnsupportedForMessageFormatError,
)
from storage.records.layout import (
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    MAGIC_1,
    MAGIC_2,
    NO_TIMESTAMP,
    Buffer,
    Codec,
    TimestampType,
)
from storage.records.legacy import read_messages
from storage.records.record import Record

ANY_TIMESTAMP_DIFFERENCE: Final = 2**63 - 1

# The attributes that decide whether a batch needs a closer look than its header's fields.
TELLING_ATTRIBUTES: Final = CODEC_MASK | LOG_APPEND_TIME_FLAG | CONTROL_FLAG

_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}
_CODECS: Final[dict[str, Codec | None]] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


@dataclass(frozen=True, slots=True)
class RecordRules:
    """A topic's settings as far as they concern the records that it accepts.

    `codec` None keeps each producer's choice (compression.type=producer). `validate_records`
    opens every batch from clients, as Kafka does, where otherwise only other settings need it.
    """

    max_message_bytes: int = 1_048_588
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_difference_max_ms: int = ANY_TIMESTAMP_DIFFERENCE
    is_compacted: bool = False
    codec: Codec | None = None
    magic: int = MAGIC_2
    validate_records: bool = False
    # Whether records from clients are judged one by one.
    looks_into_records: bool = field(init=False, repr=False, compare=False)
    # Attributes with which a batch of magic 2 is stored as it came, offsets aside.
    as_is_from_client: frozenset[int] = field(init=False, repr=False, compare=False)
    as_is_from_coordinator: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        limits_create_time = (
            self.timestamp_type is TimestampType.CREATE_TIME
            and self.timestamp_difference_max_ms != ANY_TIMESTAMP_DIFFERENCE
        )
        looks_into_records = self.is_compacted or self.validate_records or limits_create_time
        codecs = frozenset[int]()
        if self.magic == MAGIC_2:
            codecs = frozenset(Codec if self.codec is None else (self.codec,))
        markers = frozenset({CONTROL_FLAG} if self.magic == MAGIC_2 else ())
        object.__setattr__(self, "looks_into_records", looks_into_records)
        object.__setattr__(self, "as_is_from_client", codecs)
        object.__setattr__(self, "as_is_from_coordinator", codecs | markers)

    @classmethod
    def of(cls, config: LogConfig, *, validate_records: bool = False) -> "RecordRules":
        """The rules that a log's settings make."""
        return cls(
            max_message_bytes=config.max_message_bytes,
            timestamp_type=_TIMESTAMP_TYPES[config.message_timestamp_type],
            timestamp_difference_max_ms=config.message_timestamp_difference_max_ms,
            is_compacted=config.compacts,
            codec=_CODECS[config.compression_type],
            magic=config.record_magic,
            validate_records=validate_records,
        )


class CheckedRecords(NamedTuple):
    """The records of one payload, each of them acceptable.

    `numbering_can_be_kept`: offsets can be assigned without rewriting what is inside batches.
    """

    records: list[Record]
    max_timestamp: int
    numbering_can_be_kept: bool


def complete_batches(payload: Buffer, max_message_bytes: int) -> Iterator[Batch]:
    """The batches of a payload, each of a permitted size and with the right CRC."""
    for batch in iter_batches(payload):
        ensure_size(len(batch.data), max_message_bytes)
        if not is_intact(batch):
            raise CorruptRecordError(
                f"A batch's CRC {batch.header.crc:#010x} is not that of its bytes"
            )
        yield batch


def check_payload(batches: list[Batch], target_magic: int, origin: AppendOrigin) -> None:
    """Judge a payload for a leader by the headers of its batches."""
    if not batches:
        raise InvalidRecordError("There is no complete record batch to append")
    first = batches[0].header
    if len(batches) > 1 and (
        first.magic == MAGIC_2 or any(batch.header.codec for batch in batches)
    ):
        raise InvalidRecordError(
            f"Exactly one batch is allowed where it is compressed or of magic 2, "
            f"but there are {len(batches)}"
        )
    for batch in batches:
        if batch.header.magic != first.magic:
            raise InvalidRecordError(
                f"Batches of magic {first.magic} and {batch.header.magic} are mixed"
            )
        if origin is AppendOrigin.CLIENT and first.magic == MAGIC_2:
            _check_client_header(batch)
        _check_target_magic(batch, target_magic)


def _check_client_header(batch: Batch) -> None:
    header = batch.header
    if header.base_offset != 0:
        raise InvalidRecordError(f"A produced batch's base offset is {header.base_offset}, not 0")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecordError(
            f"A batch of {header.record_count} records cannot have "
            f"the last offset delta {header.last_offset_delta}"
        )
    if header.is_control:
        raise InvalidRecordError("Clients may not write control batches")
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecordError(
            f"A batch of producer {header.producer_id} has the sequence {header.base_sequence}"
        )


def _check_target_magic(batch: Batch, target_magic: int) -> None:
    if target_magic == MAGIC_2:
        return
    if batch.header.is_transactional:
        raise UnsupportedForMessageFormatError(
            f"Transactional records cannot be stored in messages of magic {target_magic}"
        )
    if batch.header.has_producer_id:
        raise UnsupportedForMessageFormatError(
            f"Idempotent records cannot be stored in messages of magic {target_magic}"
        )


def check_records(batches: list[Batch], rules: RecordRules, now_ms: int) -> CheckedRecords:
    """Open the batches and judge each record; the first batch with faults is refused."""
    records: list[Record] = []
    for batch in batches:
        opened = list(_wrapped_records(batch) if _is_wrapper(batch) else iter_records(batch))
        if _is_suspicious(opened, batch, rules, now_ms):
            _refuse_faults(opened, batch, rules, now_ms)
        records += opened
    if not records:
        raise InvalidRecordError("There is no record to append")
    return CheckedRecords(
        records,
        max(NO_TIMESTAMP, max(record.timestamp for record in records)),
        _numbering_can_be_kept(batches, records),
    )


def _is_suspicious(records: list[Record], batch: Batch, rules: RecordRules, now_ms: int) -> bool:
    """Whether any record may have a fault: one quick look at all instead of a long one at each."""
    if batch.header.attributes & LOG_APPEND_TIME_FLAG:
        return True
    if rules.is_compacted and any(record.key is None for record in records):
        return True
    if rules.timestamp_difference_max_ms == ANY_TIMESTAMP_DIFFERENCE:
        return False
    earliest = now_ms - rules.timestamp_difference_max_ms
    latest = now_ms + rules.timestamp_difference_max_ms
    return any(not earliest <= record.timestamp <= latest for record in records)


def _refuse_faults(records: list[Record], batch: Batch, rules: RecordRules, now_ms: int) -> None:
    faults: list[RecordFault] = []
    has_timestamp_fault = False
    for index, record in enumerate(records):
        if rules.is_compacted and record.key is None:
            faults.append(RecordFault(index, "A compacted topic needs a key in each record"))
        elif fault := _timestamp_fault(record.timestamp, batch, rules, now_ms):
            faults.append(RecordFault(index, fault))
            has_timestamp_fault = True
    if has_timestamp_fault:
        raise InvalidTimestampError("Records have timestamps that are not accepted", faults)
    if faults:
        raise InvalidRecordError("Records are not accepted", faults)


def _is_wrapper(batch: Batch) -> bool:
    return batch.header.magic <= MAGIC_1 and batch.header.codec is not Codec.NONE


def _numbering_can_be_kept(batches: list[Batch], records: list[Record]) -> bool:
    """Whether relative offsets inside the batch run from 0 without gaps; not all clients' do."""
    first = batches[0]
    if first.header.magic <= MAGIC_1 and not _is_wrapper(first):
        return True
    return all(record.offset == index for index, record in enumerate(records))


def _wrapped_records(wrapper: Batch) -> Iterator[Record]:
    for index, message in enumerate(read_messages(wrapper.data, wrapper.header)):
        if message.magic != wrapper.header.magic:
            fault = f"A message of magic {message.magic} is wrapped in {wrapper.header.magic}"
            raise InvalidRecordError("Records are not accepted", [RecordFault(index, fault)])
        if message.attributes & CODEC_MASK:
            fault = "A wrapped message may not be compressed itself"
            raise InvalidRecordError("Records are not accepted", [RecordFault(index, fault)])
        if not message.is_intact:
            raise CorruptRecordError(f"The CRC of wrapped message {index} is not that of its bytes")
        yield message.record


def _timestamp_fault(timestamp: int, batch: Batch, rules: RecordRules, now_ms: int) -> str | None:
    difference = rules.timestamp_difference_max_ms
    if (
        rules.timestamp_type is TimestampType.CREATE_TIME
        and timestamp != NO_TIMESTAMP
        and abs(timestamp - now_ms) > difference
    ):
        return (
            f"Timestamp {timestamp} lies outside of {now_ms - difference} to {now_ms + difference}"
        )
    if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return "Producers may not set the timestamp type LogAppendTime"
    return None
