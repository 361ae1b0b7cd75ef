"""Bytes that Apache Kafka 2.5.1's own classes wrote, read and written again here.

data/MakeBatches.java made them; the records are the same in every format, except that headers
and producer fields exist in magic 2 only.
"""

from base64 import b64decode
from pathlib import Path

import pytest

from storage.records import (
    Batch,
    BatchBuilder,
    Codec,
    ProducerInfo,
    Record,
    build_empty_batch,
    is_intact,
    iter_batches,
    iter_records,
)
from storage.records.compression import decompress
from storage.records.control import ControlType, EndTxnMarker, parse_end_txn_marker
from storage.records.conversion import down_convert
from storage.records.layout import BATCH_HEADER_SIZE, NO_SEQUENCE, TimestampType
from storage.records.legacy_builder import LegacyBuilder

APPEND_TIME = 1_600_000_009_999
HEADERS = (("a", b"1"), ("é", None))
PRODUCER = ProducerInfo(4711, 5, 17)
TIMESTAMP_TYPES = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}

FIXTURES = {
    name: b64decode(encoded)
    for name, _, encoded in (
        line.partition(" ")
        for line in (Path(__file__).parent / "data/kafka-2.5.1.txt").read_text().splitlines()
    )
}
BATCHES = sorted(name for name in FIXTURES if name.startswith("batch/"))
DOWN_CONVERSIONS = sorted(name for name in FIXTURES if name.startswith("down/"))


def expected_records(magic: int, timestamp_type: str) -> list[Record]:
    timestamps = [1_600_000_000_000, 1_600_000_000_070, 1_600_000_000_007]
    if magic == 0:
        timestamps = [-1] * 3
    elif timestamp_type == "LogAppendTime":
        timestamps = [APPEND_TIME] * 3
    return [
        Record(40, timestamps[0], None, b"value"),
        Record(41, timestamps[1], b"key", None),
        Record(45, timestamps[2], b"", b"x" * 300, HEADERS if magic == 2 else ()),
    ]


def all_records(data: bytes | bytearray) -> list[Record]:
    return [record for batch in iter_batches(data) for record in iter_records(batch)]


def written_here(magic: int, codec: Codec, timestamp_type: str) -> bytearray:
    log_append_time = APPEND_TIME if timestamp_type == "LogAppendTime" else None
    records = expected_records(2, "CreateTime")
    if magic == 2:
        builder = BatchBuilder(
            base_offset=40,
            codec=codec,
            log_append_time=log_append_time,
            producer=PRODUCER,
            leader_epoch=8,
        )
        for record in records:
            builder.append(
                record.timestamp, record.key, record.value, record.headers, record.offset
            )
        return builder.build()
    legacy = LegacyBuilder(magic, base_offset=40, codec=codec, log_append_time=log_append_time)
    for record in records:
        legacy.append(record.timestamp, record.key, record.value, record.offset)
    return legacy.build()


def test_every_format_and_codec_is_among_the_fixtures() -> None:
    assert len(BATCHES) == 4 + 8 + 10
    assert len(DOWN_CONVERSIONS) == 8 * 4 + 8 * 4 * 2


@pytest.mark.parametrize("name", BATCHES)
def test_kafkas_batch_is_read_record_for_record(name: str) -> None:
    _, magic, codec, timestamp_type = name.split("/")
    batches = list(iter_batches(FIXTURES[name]))
    assert all(is_intact(batch) for batch in batches)
    assert {batch.header.codec.name.lower() for batch in batches} == {codec}
    assert sum(batch.header.size_in_bytes for batch in batches) == len(FIXTURES[name])
    assert batches[-1].header.last_offset == 45
    if magic != "0":
        assert {batch.header.timestamp_type for batch in batches} == {
            TIMESTAMP_TYPES[timestamp_type]
        }
    assert all_records(FIXTURES[name]) == expected_records(int(magic), timestamp_type)


@pytest.mark.parametrize("name", [name for name in BATCHES if "/none/" in name])
def test_uncompressed_batch_written_here_is_kafkas_byte_for_byte(name: str) -> None:
    _, magic, _, timestamp_type = name.split("/")
    assert written_here(int(magic), Codec.NONE, timestamp_type) == FIXTURES[name]


def uncompressed(batch: Batch) -> bytes:
    return decompress(batch.header.codec, batch.data[BATCH_HEADER_SIZE:])


@pytest.mark.parametrize(
    "name", [name for name in BATCHES if name.startswith("batch/2/") and "/none/" not in name]
)
def test_compressed_batch_written_here_differs_from_kafkas_in_the_codecs_output_only(
    name: str,
) -> None:
    _, _, codec, timestamp_type = name.split("/")
    (ours,) = iter_batches(written_here(2, Codec[codec.upper()], timestamp_type))
    (kafkas,) = iter_batches(FIXTURES[name])
    assert uncompressed(ours) == uncompressed(kafkas)
    size = {"batch_length": 0, "crc": 0}
    assert ours.header._replace(**size) == kafkas.header._replace(**size)


@pytest.mark.parametrize(
    "name", [name for name in BATCHES if not name.startswith("batch/2/") and "/none/" not in name]
)
def test_wrapper_written_here_holds_the_same_messages_as_kafkas(name: str) -> None:
    _, magic, codec, timestamp_type = name.split("/")
    data = written_here(int(magic), Codec[codec.upper()], timestamp_type)
    (ours,) = iter_batches(data)
    (kafkas,) = iter_batches(FIXTURES[name])
    size = {"batch_length": 0, "crc": 0}
    assert ours.header._replace(**size) == kafkas.header._replace(**size)
    assert is_intact(ours)
    assert all_records(data) == expected_records(int(magic), timestamp_type)


def test_lz4_of_magic_0_has_the_header_checksum_of_old_clients() -> None:
    frame_header = bytes.fromhex("04224d18 6040 1a")
    assert frame_header in FIXTURES["batch/0/lz4/CreateTime"]
    assert frame_header in written_here(0, Codec.LZ4, "CreateTime")
    assert bytes.fromhex("04224d18 6040 82") in written_here(1, Codec.LZ4, "CreateTime")


@pytest.mark.parametrize("name", DOWN_CONVERSIONS)
def test_down_conversion_gives_what_kafkas_gives(name: str) -> None:
    _, magic, codec, timestamp_type, target, first_offset = name.split("/")
    source = FIXTURES[f"batch/{magic}/{codec}/{timestamp_type}"]
    converted = down_convert(source, int(target), int(first_offset))
    assert all_records(bytearray(converted.data)) == all_records(FIXTURES[name])
    ours, kafkas = list(iter_batches(converted.data)), list(iter_batches(FIXTURES[name]))
    assert all(is_intact(batch) for batch in ours)
    if codec == "none":
        assert converted.data == FIXTURES[name]
    else:
        size = {"batch_length": 0, "crc": 0}
        assert [batch.header._replace(**size) for batch in ours] == [
            batch.header._replace(**size) for batch in kafkas
        ]


@pytest.mark.parametrize("control_type", [ControlType.ABORT, ControlType.COMMIT])
def test_transaction_marker_is_read_and_written_as_kafkas(control_type: ControlType) -> None:
    fixture = FIXTURES[f"marker/{control_type.name}"]
    (batch,) = iter_batches(fixture)
    (record,) = iter_records(batch)
    assert batch.header.is_control
    assert batch.header.is_transactional
    assert (batch.header.producer_id, batch.header.producer_epoch) == (4711, 5)
    marker = parse_end_txn_marker(record.key, record.value)
    assert marker == EndTxnMarker(control_type, 13)
    builder = BatchBuilder(
        base_offset=70,
        producer=ProducerInfo(4711, 5, NO_SEQUENCE, is_transactional=True),
        is_control=True,
        leader_epoch=6,
    )
    builder.append_end_txn_marker(1_600_000_000_123, marker)
    assert builder.build() == fixture


def test_empty_batch_left_by_compaction_is_kafkas_byte_for_byte() -> None:
    (full,) = iter_batches(FIXTURES["batch/2/gzip/CreateTime"])
    assert build_empty_batch(full.header) == FIXTURES["empty"]
    (empty,) = iter_batches(FIXTURES["empty"])
    assert is_intact(empty)
    assert list(iter_records(empty)) == []
    assert empty.header.last_offset == 45
