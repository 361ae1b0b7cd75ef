import gc
from pathlib import Path

from analytics.logs.partitions import Segment
from analytics.pieces import Piece
from analytics.source.options import TaskBytes, parse_options
from analytics.source.readers import BatchReader
from analytics.source.splits import Split, bytes_per_task, gather
from tests.unit.analytics.segments import batch, write_segment


def pieces(*sizes: int) -> list[Piece]:
    return [
        Piece(Segment("d", "t", 0, n, f"{n}.log", size), 0, size) for n, size in enumerate(sizes)
    ]


def sizes(splits: list[Split]) -> list[list[int]]:
    return [[piece.size for piece in split.pieces] for split in splits]


def test_small_segments_share_a_split_and_a_large_one_has_its_own() -> None:
    assert sizes(gather(pieces(4, 5, 3, 20, 1, 1), 10)) == [[4, 5], [3], [20], [1, 1]]


def test_no_segments_make_no_splits() -> None:
    assert gather([], 10) == []


def test_tasks_share_what_is_read_among_the_cores_within_bounds() -> None:
    bounds = TaskBytes(least=64, most=256)
    assert bytes_per_task(1024, bounds, cores=4) == 128
    assert bytes_per_task(1024, bounds, cores=64) == 64
    assert bytes_per_task(1_000_000, bounds, cores=4) == 256


def test_what_a_task_has_loaded_is_no_longer_looked_at_for_garbage(tmp_path: Path) -> None:
    write_segment(tmp_path, "a-0", 0, [batch(0, 2)])
    reader = BatchReader(parse_options({"path": str(tmp_path)}))
    (split,) = reader.partitions()
    list(reader.read(split))
    assert gc.get_freeze_count() > 0


def test_a_reader_yields_every_batch_of_its_splits(tmp_path: Path) -> None:
    write_segment(tmp_path, "a-0", 0, [batch(0, 2), batch(2, 1)])
    write_segment(tmp_path, "b-0", 0, [batch(0, 4)])
    reader = BatchReader(parse_options({"path": str(tmp_path)}))
    counts = [
        (row["topic"], row["record_count"])
        for split in reader.partitions()
        for table in reader.read(split)
        for row in table.to_pylist()
    ]
    assert counts == [("a", 2), ("a", 1), ("b", 4)]
