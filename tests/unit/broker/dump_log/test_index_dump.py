"""Offset and time indexes: shown, held against their segment, never changed."""

from pathlib import Path

import pytest

from tests.unit.broker.dump_log.support import (
    OFFSET_INDEX,
    SEGMENT,
    TIME_INDEX,
    dump,
    offset_index,
    time_index,
    write,
)
from tests.unit.storage.support import NOW, make_batch

BATCHES = [make_batch(b"x", base_offset=n, timestamp=NOW + n) for n in range(5)]
SIZE = len(BATCHES[0])
UNUSED = (0, 0)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write(tmp_path / SEGMENT, *BATCHES)
    write(tmp_path / OFFSET_INDEX, offset_index((2, 2 * SIZE), (4, 4 * SIZE)))
    write(tmp_path / TIME_INDEX, time_index((NOW + 2, 2), (NOW + 4, 4)))
    return tmp_path


def test_entries_are_shown(directory: Path) -> None:
    shown = dump(directory / OFFSET_INDEX, directory / TIME_INDEX)
    assert shown.lines == [
        f"Dumping {directory / OFFSET_INDEX}",
        f"offset: 2 position: {2 * SIZE}",
        f"offset: 4 position: {4 * SIZE}",
        f"Dumping {directory / TIME_INDEX}",
        f"timestamp: {NOW + 2} offset: 2",
        f"timestamp: {NOW + 4} offset: 4",
    ]
    assert (shown.status, shown.complaints) == (0, [])


def test_only_verifying_shows_no_entries(directory: Path) -> None:
    write(directory / OFFSET_INDEX, offset_index((1, 2 * SIZE)))
    shown = dump("--verify-index-only", directory / OFFSET_INDEX, directory / TIME_INDEX)
    assert shown.lines == [f"Dumping {directory / n}" for n in (OFFSET_INDEX, TIME_INDEX)]
    assert shown.complaints == [
        f"Mismatches in :{directory / OFFSET_INDEX}",
        "  Index offset: 1, log offset: 2",
    ]
    assert shown.status == 0


def test_entries_set_aside_are_not_shown(directory: Path) -> None:
    entries = offset_index((2, 2 * SIZE), *[UNUSED] * 100)
    write(directory / OFFSET_INDEX, entries)
    write(directory / TIME_INDEX, time_index((NOW + 3, 3), *[UNUSED] * 100))
    shown = dump(directory / OFFSET_INDEX, directory / TIME_INDEX)
    assert len(shown.lines) == 4
    assert shown.complaints == []


def test_indexes_of_a_new_segment_are_empty(directory: Path) -> None:
    write(directory / SEGMENT)
    write(directory / OFFSET_INDEX, offset_index(*[UNUSED] * 10))
    write(directory / TIME_INDEX, time_index(*[UNUSED] * 10))
    shown = dump(directory / OFFSET_INDEX, directory / TIME_INDEX)
    assert len(shown.lines) == 2
    assert (shown.status, shown.complaints) == (0, [])


def test_an_entry_past_the_end_of_the_segment_is_a_mismatch(directory: Path) -> None:
    write(directory / OFFSET_INDEX, offset_index((2, 2 * SIZE), (9, 9 * SIZE), (10, -5)))
    assert dump(directory / OFFSET_INDEX).complaints == [
        f"Mismatches in :{directory / OFFSET_INDEX}",
        "  Index offset: 10, log offset: -1",
        "  Index offset: 9, log offset: -1",
    ]


def test_an_entry_that_points_into_a_batch_is_told_of(directory: Path) -> None:
    write(directory / OFFSET_INDEX, offset_index((2, 2 * SIZE + 1), (4, 4 * SIZE)))
    shown = dump(directory / OFFSET_INDEX)
    assert shown.lines[-1] == f"offset: 4 position: {4 * SIZE}"
    assert len(shown.complaints) == 1
    assert shown.complaints[0].startswith(f"{directory / OFFSET_INDEX}: offset 2: Unknown magic")
    assert shown.status == 1


def test_a_batch_above_the_largest_size_is_told_of(directory: Path) -> None:
    shown = dump("--max-message-size", str(SIZE - 1), directory / OFFSET_INDEX)
    assert len(shown.complaints) == 2
    assert "--max-message-size" in shown.complaints[0]
    assert shown.status == 1


def test_wrong_times_are_told_of(directory: Path) -> None:
    write(
        directory / TIME_INDEX,
        time_index((NOW + 2, 1), (NOW + 3, 3), (NOW + 1, 4), (NOW + 9, 7)),
    )
    shown = dump(directory / TIME_INDEX)
    assert len(shown.lines) == 5
    assert shown.complaints == [
        f"Found timestamp mismatch in :{directory / TIME_INDEX}",
        f"  Index timestamp: {NOW + 2}, log timestamp: {NOW + 1}",
        f"  Index timestamp: {NOW + 1}, log timestamp: {NOW + 4}",
        f"Found out of order timestamp in :{directory / TIME_INDEX}",
        f"  Index timestamp: {NOW + 1}, Previously indexed timestamp: {NOW + 3}",
        "The following indexed offsets are not found in the log.",
        "Indexed offset: 7, found log offset: -1",
    ]


def test_an_offset_inside_a_batch_is_not_found_in_the_log(tmp_path: Path) -> None:
    write(tmp_path / SEGMENT, make_batch(b"x", b"y", b"z"))
    write(tmp_path / TIME_INDEX, time_index((NOW + 1, 1)))
    assert dump(tmp_path / TIME_INDEX).complaints == [
        "The following indexed offsets are not found in the log.",
        "Indexed offset: 1, found log offset: 2",
    ]


def test_a_time_index_is_verified_without_an_offset_index(directory: Path) -> None:
    (directory / OFFSET_INDEX).unlink()
    shown = dump(directory / TIME_INDEX)
    assert (shown.status, shown.complaints) == (0, [])
    assert not (directory / OFFSET_INDEX).exists()


@pytest.mark.parametrize("name", [OFFSET_INDEX, TIME_INDEX])
def test_without_its_segment_an_index_cannot_be_shown(directory: Path, name: str) -> None:
    (directory / SEGMENT).unlink()
    shown = dump(directory / name)
    assert shown.complaints == [f"{directory / SEGMENT}: cannot be read: No such file or directory"]
    assert shown.status == 1


@pytest.mark.parametrize("name", [OFFSET_INDEX, TIME_INDEX])
def test_a_torn_entry_is_told_of(directory: Path, name: str) -> None:
    path = directory / name
    write(path, path.read_bytes(), b"\1\2\3")
    assert dump(path).lines[-1] == f"Found 3 invalid bytes at the end of {name}"


@pytest.mark.parametrize("name", [OFFSET_INDEX, TIME_INDEX])
def test_sane_indexes_pass_the_sanity_check_even_without_a_segment(
    directory: Path, name: str
) -> None:
    (directory / SEGMENT).unlink()
    path = directory / name
    assert dump("--index-sanity-check", path).lines == [
        f"Dumping {path}",
        f"{path} passed sanity check.",
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (OFFSET_INDEX, b"\0" * 9, "9 bytes"),
        (OFFSET_INDEX, offset_index((2, 3), (-1, 4)), "before its segment"),
        (TIME_INDEX, b"\0" * 13, "13 bytes"),
        (TIME_INDEX, time_index((5, 1), (4, 2)), "last timestamp, 4"),
        (TIME_INDEX, time_index((5, 1), (6, -2)), "before its segment"),
    ],
)
def test_insane_indexes_fail_the_sanity_check(
    directory: Path, name: str, content: bytes, reason: str
) -> None:
    path = write(directory / name, content)
    shown = dump("--index-sanity-check", path)
    assert len(shown.complaints) == 1
    assert shown.complaints[0].startswith(f"{path} failed the sanity check: ")
    assert reason in shown.complaints[0]
    assert shown.status == 1
