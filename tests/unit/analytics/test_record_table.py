"""The record table, row by row, against what consumers read and against the batches themselves."""

import struct
from pathlib import Path
from typing import Any

import pytest

from analytics.decoding import windows
from analytics.logs.partitions import find_partitions
from analytics.pieces import Piece
from analytics.problems import DamagedLogError, Kind, Problem
from analytics.record_table import RecordQuery, read_records
from storage.records.builder import BatchBuilder
from storage.records.layout import MAGIC_0, MAGIC_1, Codec
from storage.records.legacy_builder import LegacyBuilder
from tests.fidelity.fixture_logs import FixtureLog, data_directory, fixture_logs
from tests.unit.analytics.reading import as_consumed, offsets, record_reader, records
from tests.unit.analytics.segments import START_MS, batch, write_segment

ALL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
each_log = pytest.mark.parametrize("log", fixture_logs(), ids=str)


def read(log_dir: Path, query: RecordQuery | None = None) -> tuple[list[Any], list[Problem]]:
    """The Arrow batches of all segments, and the problems on the way."""
    problems: list[Problem] = []
    (log,) = find_partitions(log_dir)
    pieces = [Piece(segment, 0, segment.size) for segment in log.segments]
    return list(read_records(pieces, query or RecordQuery(ALL), problems.append)), problems


@each_log
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_of_kafkas_own_logs_are_what_a_consumer_read(log: FixtureLog, isolation: str) -> None:
    topic, _, partition = log.name.rpartition("-")
    rows = records(
        data_directory(log.release),
        assign=f'{{"{topic}": [{partition}]}}',
        isolationLevel=isolation,
        includeHeaders="true",
    )
    assert {(row["topic"], row["partition"]) for row in rows} <= {(topic, int(partition))}
    assert [as_consumed(row) for row in rows] == log.consumed(isolation)


@pytest.mark.parametrize("codec", list(Codec))
def test_windows_smaller_than_batches_change_nothing(
    tmp_path: Path, codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(n * 50, 50, codec) for n in range(20)])
    expected = offsets(tmp_path)
    assert expected == list(range(1000))
    monkeypatch.setattr(windows, "_WINDOW_BYTES", 100)
    assert offsets(tmp_path) == expected


@pytest.mark.parametrize("magic", [MAGIC_0, MAGIC_1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_messages_are_read_with_their_offsets_and_times(
    tmp_path: Path, magic: int, codec: Codec
) -> None:
    builder = LegacyBuilder(magic, base_offset=7, codec=codec)
    for number in range(5):
        builder.append(
            START_MS + number, b"k%d" % number, None if number == 2 else b"v", 7 + number
        )
    write_segment(tmp_path, "t-0", 7, [builder.build()])
    rows = records(tmp_path, includeHeaders="true")
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (7 + n, b"k%d" % n, None if n == 2 else b"v") for n in range(5)
    ]
    assert {row["timestampType"] for row in rows} == {-1 if magic == MAGIC_0 else 0}
    assert {row["headers"] for row in rows} == {None}


def test_times_that_spark_cannot_hold_keep_their_order(tmp_path: Path) -> None:
    """A producer that sends nanoseconds, say."""
    times = [-(1 << 62), -1, START_MS, START_MS * 1_000_000, (1 << 63) - 1]
    for offset, time in enumerate(times):
        builder = BatchBuilder(base_offset=offset)
        builder.append(time, None, b"v", (), offset)
        write_segment(tmp_path, "t-0", offset, [builder.build()])
    found = [
        microseconds
        for split in record_reader(tmp_path).partitions()
        for table in record_reader(tmp_path).read(split)
        for microseconds in table["timestamp"].cast("int64").to_pylist()
    ]
    largest = ((1 << 63) - 1) // 1000 * 1000
    assert found == [-largest, -1000, START_MS * 1000, largest, largest]


def test_batches_are_capped_by_rows_and_by_bytes(tmp_path: Path) -> None:
    builder = BatchBuilder(base_offset=0)
    for offset in range(100):
        builder.append(START_MS, None, bytes(100), (), offset)
    write_segment(tmp_path, "t-0", 0, [builder.build()])
    by_rows, _ = read(tmp_path, RecordQuery(ALL, rows_per_batch=30))
    assert [table.num_rows for table in by_rows] == [30, 30, 30, 10]
    by_bytes, _ = read(tmp_path, RecordQuery(ALL, bytes_per_batch=1000))
    assert [table.num_rows for table in by_bytes] == [10] * 10
    assert [row["offset"] for table in by_bytes for row in table.to_pylist()] == list(range(100))


def test_the_cap_holds_again_after_a_record_larger_than_it(tmp_path: Path) -> None:
    builder = BatchBuilder()
    for size in (100_000, *[100] * 1000):
        builder.append(START_MS, None, bytes(size))
    write_segment(tmp_path, "t-0", 0, [builder.build()])
    tables, _ = read(tmp_path, RecordQuery(ALL, bytes_per_batch=1000))
    sizes = [sum(map(len, table["value"].to_pylist())) for table in tables]
    assert sizes[0] >= 100_000
    assert {*sizes[1:]} == {1000}


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_cap_of_almost_nothing_is_outgrown_as_well(tmp_path: Path, cap: int) -> None:
    builder = BatchBuilder()
    builder.append(START_MS, b"key", None, [("header", b"value")])
    write_segment(tmp_path, "t-0", 0, [builder.build()])
    (table,), _ = read(tmp_path, RecordQuery(ALL, bytes_per_batch=cap))
    assert table["key"].to_pylist() == [b"key"]


def test_a_record_larger_than_the_cap_has_a_batch_of_its_own(tmp_path: Path) -> None:
    builder = BatchBuilder(base_offset=0)
    for offset, size in enumerate((10, 5000, 10)):
        builder.append(START_MS, bytes(size), bytes(size), (("h", bytes(size)),), offset)
    write_segment(tmp_path, "t-0", 0, [builder.build()])
    tables, _ = read(tmp_path, RecordQuery(ALL, bytes_per_batch=100))
    rows = [row for table in tables for row in table.to_pylist()]
    assert [len(row["value"]) for row in rows] == [10, 5000, 10]
    assert [len(row["headers"][0]["value"]) for row in rows] == [10, 5000, 10]


def test_columns_may_be_left_out(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 2)])
    rows = records(tmp_path, excludeColumns="value, timestampType")
    assert list(rows[0]) == ["key", "topic", "partition", "offset", "timestamp"]


def test_header_keys_that_are_no_text_are_read_with_marks_instead(tmp_path: Path) -> None:
    data = bytearray(_batch_with_header("ab"))
    assert data.count(b"ab") == 1
    data[data.index(b"ab")] = 0xFF
    _patch_crc(data)
    write_segment(tmp_path, "t-0", 0, [data])
    (row,) = records(tmp_path, includeHeaders="true")
    assert row["headers"] == [{"key": "\ufffdb", "value": b"x"}]


def test_a_wrong_checksum_ends_the_query_and_names_the_place(tmp_path: Path) -> None:
    file = _write_damaged(tmp_path)
    with pytest.raises(DamagedLogError, match=rf"{file}, position {len(batch(0, 3))}: wrong crc"):
        records(tmp_path)


def test_a_wrong_checksum_costs_that_batch_alone_where_damage_is_skipped(tmp_path: Path) -> None:
    _write_damaged(tmp_path)
    assert offsets(tmp_path, onDamage="skip") == [0, 1, 2, 6, 7, 8]


def test_records_that_belie_their_batch_are_a_problem_of_that_batch(tmp_path: Path) -> None:
    lying = batch(3, 3)
    lying[-2] ^= 0x7F  # the last record's value reaches past its end now
    lying[57:61] = (4).to_bytes(4, "big")  # and a record more is declared
    _patch_crc(lying)
    write_segment(tmp_path, "t-0", 0, [batch(0, 3), lying, batch(6, 3)])
    tables, problems = read(tmp_path)
    found = [row["offset"] for table in tables for row in table.to_pylist()]
    assert found == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert [(problem.kind, problem.base_offset) for problem in problems] == [(Kind.UNREADABLE, 3)]


def test_compressed_data_that_is_none_is_a_problem_of_that_batch(tmp_path: Path) -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        lying = batch(3, 3, codec)
        lying[61:] = bytes(len(lying) - 61)
        _patch_crc(lying)
        write_segment(tmp_path, "t-0", 0, [batch(0, 3), lying, batch(6, 3)])
        tables, problems = read(tmp_path)
        assert sum(table.num_rows for table in tables) == 6, codec
        assert [problem.kind for problem in problems] == [Kind.UNREADABLE], codec


@pytest.mark.parametrize("cut", [8, 20, 60, 61, 70])
def test_half_a_batch_at_the_end_of_a_log_is_its_end(tmp_path: Path, cut: int) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 3), batch(3, 3)[:cut]])
    assert offsets(tmp_path) == [0, 1, 2]
    _, problems = read(tmp_path)
    assert [(problem.kind, problem.bytes) for problem in problems] == [(Kind.TORN_TAIL, cut)]


def test_half_a_batch_before_another_segment_is_damage(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 3), batch(3, 3)[:-1]])
    write_segment(tmp_path, "t-0", 6, [batch(6, 3)])
    with pytest.raises(DamagedLogError, match="cut off"):
        records(tmp_path)
    assert offsets(tmp_path, onDamage="skip") == [0, 1, 2, 6, 7, 8]


@pytest.mark.parametrize("unused", [1, 25, 26, 61, 10_000])
def test_the_unused_part_of_a_preallocated_log_is_no_damage(tmp_path: Path, unused: int) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 3), bytes(unused)])
    assert offsets(tmp_path) == [0, 1, 2]
    assert read(tmp_path)[1] == []


@pytest.mark.parametrize("damage", ["length", "zeros"])
def test_damage_in_the_middle_of_the_last_segment_is_not_its_end(
    tmp_path: Path, damage: str
) -> None:
    batches = [batch(n, 1) for n in range(4)]
    middle = sum(map(len, batches[:2]))
    if damage == "length":
        batches[1][8:12] = (10_000).to_bytes(4)
    else:
        batches[1][:] = bytes(len(batches[1]))
    segment = write_segment(tmp_path, "t-0", 0, batches)
    segment.with_suffix(".index").write_bytes(struct.pack(">ii", 2, middle))
    in_two = {"maxBytesPerTask": str(middle)}
    assert offsets(tmp_path, **in_two, onDamage="skip") == [0, 2, 3]
    with pytest.raises(DamagedLogError):
        offsets(tmp_path, **in_two)


def test_zeros_before_another_segment_are_damage(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 3), bytes(1000)])
    write_segment(tmp_path, "t-0", 3, [batch(3, 1)])
    with pytest.raises(DamagedLogError, match="not a batch"):
        records(tmp_path)


def _write_damaged(log_dir: Path) -> Path:
    damaged = batch(3, 3)
    damaged[-1] ^= 0xFF
    return write_segment(log_dir, "t-0", 0, [batch(0, 3), damaged, batch(6, 3)])


def _batch_with_header(key: str) -> bytes:
    builder = BatchBuilder(base_offset=0)
    builder.append(START_MS, b"k", b"v", ((key, b"x"),), 0)
    return bytes(builder.build())


def _patch_crc(data: bytearray) -> None:
    from storage.checksums import crc32c

    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
