from pathlib import Path

from analytics.log_dirs import Segment
from analytics.source import BatchReader, SegmentSplit, plan_splits
from tests.unit.analytics.segments import batch, write_segment


def segments(*sizes: int) -> list[Segment]:
    return [Segment("d", "t", 0, n, f"{n}.log", size) for n, size in enumerate(sizes)]


def sizes(splits: list[SegmentSplit]) -> list[list[int]]:
    return [[segment.size for segment in split.segments] for split in splits]


def test_small_segments_share_a_split_and_a_large_one_has_its_own() -> None:
    assert sizes(plan_splits(segments(4, 5, 3, 20, 1, 1), 10)) == [[4, 5], [3], [20], [1, 1]]


def test_no_segments_make_no_splits() -> None:
    assert plan_splits([], 10) == []


def test_a_reader_yields_every_batch_of_its_splits(tmp_path: Path) -> None:
    write_segment(tmp_path, "a-0", 0, [batch(0, 2), batch(2, 1)])
    write_segment(tmp_path, "b-0", 0, [batch(0, 4)])
    reader = BatchReader(tmp_path)
    counts = [
        (row["topic"], row["record_count"])
        for split in reader.partitions()
        for table in reader.read(split)
        for row in table.to_pylist()
    ]
    assert counts == [("a", 2), ("a", 1), ("b", 4)]
