"""kafka-python and aiokafka read what is written here, and the other way round."""

from collections.abc import Callable
from typing import Any

import aiokafka.record.default_records as aiokafka_default
import aiokafka.record.legacy_records as aiokafka_legacy
import aiokafka.record.memory_records as aiokafka_memory
import kafka.record.default_records as kafka_python_default
import kafka.record.legacy_records as kafka_python_legacy
import kafka.record.memory_records as kafka_python_memory
import pytest
from hypothesis import given

from storage.records import Codec, Record, is_intact, iter_batches
from tests.unit.storage.records.samples import (
    LEGACY_CODECS,
    all_records,
    batch_of,
    codecs,
    messages_of,
    record_lists,
)

DEFAULT_BUILDERS = [
    aiokafka_default.DefaultRecordBatchBuilder,
    kafka_python_default.DefaultRecordBatchBuilder,
]
LEGACY_BUILDERS = [
    aiokafka_legacy.LegacyRecordBatchBuilder,
    kafka_python_legacy.LegacyRecordBatchBuilder,
]
READERS = [aiokafka_memory.MemoryRecords, kafka_python_memory.MemoryRecords]

# Both clients compute lz4 of magic 0 with a package that is not among the dependencies here.
LEGACY_FORMATS = [
    (magic, codec)
    for magic in (0, 1)
    for codec in LEGACY_CODECS
    if (magic, codec) != (0, Codec.LZ4)
]


def read_by(reader: Callable[[bytes], Any], data: bytes) -> list[Record]:
    records = []
    batches = reader(data)
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        records += [
            Record(
                record.offset,
                -1 if record.timestamp is None else record.timestamp,
                record.key,
                record.value,
                tuple(record.headers),
            )
            for record in batch
        ]
    return records


def from_zero(records: list[Record]) -> list[Record]:
    """As a producer sends them; aiokafka takes a first timestamp of -1 for one not yet set."""
    return [
        record._replace(offset=index, timestamp=max(record.timestamp, 0))
        for index, record in enumerate(records)
    ]


@pytest.mark.parametrize("reader", READERS)
@given(records=record_lists(), codec=codecs)
def test_clients_read_batches_written_here(
    reader: Callable[[bytes], Any], records: list[Record], codec: Codec
) -> None:
    assert read_by(reader, bytes(batch_of(records, codec))) == records


@pytest.mark.parametrize("builder_type", DEFAULT_BUILDERS)
@given(records=record_lists(), codec=codecs)
def test_batches_written_by_clients_are_read_here(
    builder_type: Callable[..., Any], records: list[Record], codec: Codec
) -> None:
    builder = builder_type(
        magic=2,
        compression_type=int(codec),
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**6,
    )
    for record in from_zero(records):
        headers = list(record.headers)
        builder.append(record.offset, record.timestamp, record.key, record.value, headers)
    data = bytes(builder.build())
    assert all_records(data) == from_zero(records)
    assert all(is_intact(batch) for batch in iter_batches(data))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("magic", "codec"), LEGACY_FORMATS)
@given(records=record_lists(with_headers=False))
def test_clients_read_messages_written_here(
    reader: Callable[[bytes], Any], magic: int, codec: Codec, records: list[Record]
) -> None:
    expected = records if magic else [record._replace(timestamp=-1) for record in records]
    assert read_by(reader, bytes(messages_of(records, magic, codec))) == expected


@pytest.mark.parametrize("builder_type", LEGACY_BUILDERS)
@pytest.mark.parametrize(("magic", "codec"), LEGACY_FORMATS)
@given(records=record_lists(with_headers=False))
def test_messages_written_by_clients_are_read_here(
    builder_type: Callable[..., Any], magic: int, codec: Codec, records: list[Record]
) -> None:
    builder = builder_type(magic=magic, compression_type=int(codec), batch_size=10**6)
    for record in from_zero(records):
        builder.append(record.offset, record.timestamp, record.key, record.value)
    data = bytes(builder.build())
    expected = from_zero(records)
    if magic == 0:
        expected = [record._replace(timestamp=-1) for record in expected]
    assert all_records(data) == expected
    assert all(is_intact(batch) for batch in iter_batches(data))
