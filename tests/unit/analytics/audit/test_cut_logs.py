"""Logs that end too early: cut between two batches, zeroed, or left behind by their indexes. One
cut is one fault, wherever it is, and space that a broker sets aside is none."""

from pathlib import Path

import pytest

from analytics.audit.faults import Kind
from tests.unit.analytics.audit.copies import CHECKPOINTS, Copy, batch_positions, told

ROOM = bytes(240)  # of whole entries, whatever the index


@pytest.fixture
def plain(tmp_path: Path) -> Copy:
    return Copy(tmp_path, "sent-none-0")


def without_checkpoints(copy: Copy) -> Copy:
    for name in CHECKPOINTS:
        (copy.log_dir / name).unlink()
    return copy


@pytest.mark.parametrize("partition", ["sent-none-0", "transactional-0", "idempotent-0"])
def test_a_finished_segment_cut_between_two_batches_is_a_gap_before_the_next(
    tmp_path: Path, partition: str
) -> None:
    copy = Copy(tmp_path, partition)
    for file, following in zip(copy.files(".log"), copy.files(".log")[1:], strict=False):
        for start in batch_positions(file):

            def cut(data: bytearray, start: int = start) -> None:
                del data[start:]

            faults = told(copy.changed(file, cut))
            assert faults == [(following.name, 0, Kind.OFFSET_GAP)], start


@pytest.mark.parametrize("number", [0, 1, 3])
def test_an_active_segment_cut_between_two_batches_is_missed_by_the_checkpoints_once(
    plain: Copy, number: int
) -> None:
    file = plain.files(".log")[-1]
    start = batch_positions(file)[number]

    def cut(data: bytearray) -> None:
        del data[start:]

    [fault] = plain.changed(file, cut)
    assert told([fault]) == [(file.name, start, Kind.LOST)]
    assert fault.detail.startswith("the checkpoints")


@pytest.mark.parametrize("number", [0, 1, 3])
def test_an_active_segment_cut_between_two_batches_is_missed_by_its_indexes_once(
    plain: Copy, number: int
) -> None:
    without_checkpoints(plain)
    file = plain.files(".log")[-1]
    start = batch_positions(file)[number]

    def cut(data: bytearray) -> None:
        del data[start:]

    [fault] = plain.changed(file, cut)
    assert told([fault]) == [(file.name, start, Kind.LOST)]
    assert fault.detail == "its indexes know of records up to 174"


def test_an_index_alone_that_leads_past_the_end_is_told_where_it_begins_to(plain: Copy) -> None:
    without_checkpoints(plain)
    file = plain.files(".log")[-1]
    file.with_suffix(".timeindex").write_bytes(b"")
    start = batch_positions(file)[2]

    def cut(data: bytearray) -> None:
        del data[start:]

    assert told(plain.changed(file, cut)) == [(f"{file.stem}.index", 0, Kind.OFFSET_INDEX)]


@pytest.mark.parametrize("has_checkpoints", [True, False])
def test_zeros_with_indexes_in_which_no_space_is_set_aside_are_told(
    plain: Copy, has_checkpoints: bool
) -> None:
    if not has_checkpoints:
        without_checkpoints(plain)
    file = plain.files(".log")[-1]
    for kind in (".index", ".timeindex"):
        file.with_suffix(kind).write_bytes(b"")
    file.write_bytes(bytes(file.stat().st_size))
    assert told(plain.faults()) == [(file.name, 0, Kind.UNREADABLE)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_new_segment_whose_space_is_set_aside_is_no_fault(plain: Copy, suffix: str) -> None:
    """Either index shows it: one that is full has no room left."""
    file = plain.partition / f"{175:020d}.log"
    file.write_bytes(bytes(6000))
    for kind in (".index", ".timeindex"):
        file.with_suffix(kind).write_bytes(ROOM if kind == suffix else b"")
    assert plain.faults() == []
