from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analytics.batch_table import ARROW_SCHEMA
from analytics.logs.partitions import Segment, find_partitions
from analytics.source.sources import BATCH_SCHEMA
from storage.records.builder import ProducerInfo
from storage.records.layout import MAGIC_0, MAGIC_1, Codec
from storage.records.legacy_builder import LegacyBuilder
from tests.unit.analytics.segments import START_MS, batch, read_segment, write_segment


def rows(*batches: bytes | bytearray, log_dir: Path) -> list[dict[str, Any]]:
    write_segment(log_dir, "orders-3", 0, batches)
    (log,) = find_partitions(log_dir)
    return [row for table in read_segment(log.segments[0]) for row in table.to_pylist()]


def moment(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC)


def test_a_batch_is_one_row_of_what_its_header_says(tmp_path: Path) -> None:
    first = batch(0, 3)
    second = batch(3, 2, Codec.LZ4, ProducerInfo(77, 1, 5, is_transactional=True))
    _, row = rows(first, second, log_dir=tmp_path)
    assert row == {
        "topic": "orders",
        "partition": 3,
        "base_offset": 3,
        "last_offset": 4,
        "record_count": 2,
        "bytes": len(second),
        "magic": 2,
        "codec": "lz4",
        "timestamp_type": "CreateTime",
        "first_timestamp": moment(START_MS + 3),
        "last_timestamp": moment(START_MS + 4),
        "producer_id": 77,
        "producer_epoch": 1,
        "base_sequence": 5,
        "is_transactional": True,
        "is_control": False,
        "control_type": None,
        "leader_epoch": -1,
        "log_dir": str(tmp_path),
        "segment": str(tmp_path / "orders-3" / f"{0:020d}.log"),
        "position": len(first),
        "crc_ok": None,
    }


def test_a_batch_without_a_producer_has_nulls_there(tmp_path: Path) -> None:
    (row,) = rows(batch(0, 1), log_dir=tmp_path)
    assert (row["producer_id"], row["producer_epoch"], row["base_sequence"]) == (None, None, None)


def test_records_stamped_by_the_broker_share_the_batchs_time(tmp_path: Path) -> None:
    (row,) = rows(batch(0, 5, log_append_time=START_MS + 99), log_dir=tmp_path)
    assert row["timestamp_type"] == "LogAppendTime"
    assert row["first_timestamp"] == row["last_timestamp"] == moment(START_MS + 99)


@pytest.mark.parametrize("kept", [1, 12, 30, 61, -1])
def test_a_torn_tail_ends_the_segment(kept: int, tmp_path: Path) -> None:
    whole = batch(0, 3)
    found = rows(whole, batch(3, 3)[:kept], log_dir=tmp_path)
    assert [row["record_count"] for row in found] == [3]


@pytest.mark.parametrize("tail", [bytes(100), b"\xff" * 100])
def test_bytes_that_are_no_batch_end_the_segment(tail: bytes, tmp_path: Path) -> None:
    assert len(rows(batch(0, 3), tail, log_dir=tmp_path)) == 1


def test_an_empty_segment_has_no_rows(tmp_path: Path) -> None:
    assert rows(log_dir=tmp_path) == []


def test_a_segment_that_was_deleted_has_no_rows(tmp_path: Path) -> None:
    gone = Segment(str(tmp_path), "t", 0, 0, str(tmp_path / "gone.log"), 100)
    assert list(read_segment(gone)) == []


def test_bytes_appended_after_the_planning_are_for_the_next_query(tmp_path: Path) -> None:
    file = write_segment(tmp_path, "t-0", 0, [batch(0, 1)])
    (log,) = find_partitions(tmp_path)
    with file.open("ab") as stream:
        stream.write(batch(1, 1))
    assert sum(table.num_rows for table in read_segment(log.segments[0])) == 1


def test_large_batches_are_skipped_over_and_small_ones_all_found(tmp_path: Path) -> None:
    big = batch(0, 5000)
    assert len(big) > 64 * 1024
    found = rows(big, *(batch(5000 + n, 1) for n in range(3000)), log_dir=tmp_path)
    assert [found[0]["record_count"], len(found)] == [5000, 3001]
    assert found[-1]["last_offset"] == 7999


@pytest.mark.parametrize("magic", [MAGIC_0, MAGIC_1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_messages_of_older_formats_are_counted_one_by_one(
    magic: int, codec: Codec, tmp_path: Path
) -> None:
    builder = LegacyBuilder(base_offset=5, magic=magic, codec=codec)
    for offset in range(5, 9):
        builder.append(START_MS, b"key", b"value", offset)
    found = rows(builder.build(), log_dir=tmp_path)
    assert sum(row["record_count"] for row in found) == 4
    assert found[0]["base_offset"] == 5
    assert found[-1]["last_offset"] == 8
    assert found[0]["first_timestamp"] == (moment(START_MS) if magic == MAGIC_1 else None)


def test_sparks_schema_names_the_columns_of_arrows() -> None:
    assert [column.split()[0] for column in BATCH_SCHEMA.split(",")] == ARROW_SCHEMA.names
