"""Segments that change between the planning of a query and the reading."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analytics.errors import AnalysisError
from analytics.logs.lookup import walk
from analytics.logs.partitions import find_partitions
from analytics.pieces import OpenPiece, Piece, open_piece
from analytics.source.readers import RecordReader
from storage.log import Log
from storage.retention import enforce_retention
from tests.unit.analytics.logs import SMALL_SEGMENTS, append, write_log
from tests.unit.analytics.reading import offsets, record_reader
from tests.unit.analytics.segments import batch, write_segment

COUNT = 3000


def planned(directory: Path, **options: str) -> tuple[RecordReader, list[Any]]:
    reader = record_reader(directory, maxBytesPerTask="5000", **options)
    return reader, list(reader.partitions())


def read(reader: RecordReader, splits: list[Any]) -> list[int]:
    return [
        row["offset"]
        for split in splits
        for table in reader.read(split)
        for row in table.to_pylist()
    ]


def delete_old_segments(log: Log) -> None:
    log.update_config(replace(SMALL_SEGMENTS, retention_bytes=60_000, file_delete_delay_ms=0))
    log.update_high_watermark(log.end_offset)
    assert enforce_retention(log) > 0


def test_segments_deleted_under_a_reader_fail_it_unless_told_otherwise(tmp_path: Path) -> None:
    log = write_log(tmp_path, COUNT)
    reader, splits = planned(tmp_path)
    tolerant, _ = planned(tmp_path, failOnDataLoss="false")
    delete_old_segments(log)
    with pytest.raises(AnalysisError, match="was deleted while it was read"):
        read(reader, splits)
    assert read(tolerant, splits) == list(range(log.start_offset, COUNT))
    log.close()


def test_a_file_that_is_open_is_read_to_its_end_whatever_becomes_of_it(tmp_path: Path) -> None:
    log = write_log(tmp_path, COUNT)
    reader = record_reader(tmp_path)
    (split,) = reader.partitions()
    tables = reader.read(split)
    first = next(tables)
    append(log, 100)
    found = [*first["offset"].to_pylist(), *(n for t in tables for n in t["offset"].to_pylist())]
    assert found == list(range(COUNT))
    log.close()


def test_a_compacted_segment_in_the_place_of_others_is_read_for_the_same_offsets(
    tmp_path: Path,
) -> None:
    for base in (0, 10, 20, 30):
        batches = [batch(n, 1) for n in range(base, base + 10)]
        write_segment(tmp_path, "t-0", base, batches)
    reader = record_reader(tmp_path, maxBytesPerTask="1")
    splits = list(reader.partitions())
    assert len(splits) == 4
    # What cleaning does: the first two become one, and keep the last record of each ten.
    for base in (0, 10):
        replaced = tmp_path / "t-0" / f"{base:020d}.log"
        replaced.rename(f"{replaced}.deleted")
    write_segment(tmp_path, "t-0", 0, [batch(9, 1), batch(19, 1)])
    assert read(reader, splits) == [9, 19, *range(20, 40)]


def test_a_cleaned_segment_that_is_about_to_be_swapped_in_is_read_once(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 10, [batch(n, 1) for n in range(10, 20)])
    write_segment(tmp_path, "t-0", 20, [batch(n, 1) for n in range(20, 30)])
    cleaned = write_segment(tmp_path, "t-0", 0, [batch(9, 1), batch(19, 1)])
    cleaned.rename(f"{cleaned}.swap")
    assert offsets(tmp_path) == [9, 19, *range(20, 30)]
    (tmp_path / "t-0" / f"{30:020d}.log.cleaned").write_bytes(b"half a segment")
    assert offsets(tmp_path) == [9, 19, *range(20, 30)]


def test_a_partition_deleted_under_a_reader_is_data_loss(tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 3)])
    reader, splits = planned(tmp_path)
    (tmp_path / "t-0").rename(tmp_path / "t-0.0123-delete")
    with pytest.raises(AnalysisError, match="was deleted while it was read"):
        read(reader, splits)


def offsets_in(opened: OpenPiece) -> list[int]:
    """Those of a piece whose batches hold a record each."""
    piece = opened.piece
    found = [one.header.base_offset for one in walk(opened.file, piece.start, piece.end)]
    return [offset for offset in found if piece.first_offset <= offset < piece.end_offset]


def test_a_segment_replaced_again_while_its_replacement_is_read_is_read_once(
    tmp_path: Path,
) -> None:
    for base in (0, 10, 20):
        write_segment(tmp_path, "t-0", base, [batch(n, 1) for n in range(base, base + 10)])
    (log,) = find_partitions(tmp_path)
    piece = Piece(log.segments[0], 0, log.segments[0].size, 0, 30)
    (tmp_path / "t-0" / f"{0:020d}.log").unlink()
    write_segment(tmp_path, "t-0", 0, [batch(n, 1) for n in range(0, 10, 2)])
    opened = open_piece(piece, fail_on_data_loss=True)
    found = offsets_in(next(opened))
    # Meanwhile the second and third become one, and lose their odd records as well.
    for base in (10, 20):
        (tmp_path / "t-0" / f"{base:020d}.log").unlink()
    write_segment(tmp_path, "t-0", 10, [batch(n, 1) for n in range(10, 30, 2)])
    for one in opened:
        found += offsets_in(one)
    assert found == list(range(0, 30, 2))


def test_segments_deleted_twice_under_a_tolerant_reader_are_left_out(tmp_path: Path) -> None:
    for base in (0, 10, 20):
        write_segment(tmp_path, "t-0", base, [batch(n, 1) for n in range(base, base + 10)])
    (log,) = find_partitions(tmp_path)
    piece = Piece(log.segments[0], 0, log.segments[0].size, 0, 30)
    (tmp_path / "t-0" / f"{0:020d}.log").unlink()
    opened = open_piece(piece, fail_on_data_loss=False)
    assert offsets_in(next(opened)) == list(range(10, 20))
    for base in (10, 20):
        (tmp_path / "t-0" / f"{base:020d}.log").unlink()
    write_segment(tmp_path, "t-0", 30, [batch(30, 1)])
    assert [offset for one in opened for offset in offsets_in(one)] == []
