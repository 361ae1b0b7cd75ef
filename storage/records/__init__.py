"""Record batches in Apache Kafka's own bytes: reading, writing, converting.

    for batch in iter_batches(buffer):          # of any magic, unopened
        if not is_intact(batch): ...
        for record in iter_records(batch):      # decompressed and parsed lazily
            record.offset, record.timestamp, record.key, record.value, record.headers

    builder = BatchBuilder(codec=Codec.ZSTD)
    builder.append(now_ms, key, value)
    payload = builder.build()

Everything wrong with record data raises a subclass of `RecordDataError`. What concerns the fixed
header alone is in `storage.records.layout`, transaction markers are in `storage.records.control`,
conversion for old clients and topics is in `storage.records.conversion`.
"""

from storage.records.batches import Batch, is_intact, iter_batches, iter_records, parse_header
from storage.records.builder import (
    BatchBuilder,
    ProducerInfo,
    build_empty_batch,
    build_end_txn_batch,
)
from storage.records.errors import RecordDataError
from storage.records.layout import BatchHeader, Codec, TimestampType
from storage.records.record import Record, RecordHeader

__all__ = [
    "Batch",
    "BatchBuilder",
    "BatchHeader",
    "Codec",
    "ProducerInfo",
    "Record",
    "RecordDataError",
    "RecordHeader",
    "TimestampType",
    "build_empty_batch",
    "build_end_txn_batch",
    "is_intact",
    "iter_batches",
    "iter_records",
    "parse_header",
]
