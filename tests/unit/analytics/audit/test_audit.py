"""The audit on copies of logs that Apache Kafka wrote: sound ones, and damaged in every way."""

import random
from pathlib import Path

import pytest

from analytics.audit.faults import Kind
from storage.checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.unit.analytics.audit.copies import (
    CHECKPOINTS,
    FIXTURES,
    RELEASES,
    Copy,
    batch_positions,
    faults_in,
    told,
)

BASE_OFFSET_BYTES = 8
LEADER_EPOCH_BYTES = range(12, 16)


@pytest.fixture
def plain(tmp_path: Path) -> Copy:
    return Copy(tmp_path, "sent-none-0")


@pytest.fixture
def transactional(tmp_path: Path) -> Copy:
    return Copy(tmp_path, "transactional-0")


@pytest.mark.parametrize("release", RELEASES)
def test_logs_of_kafka_have_no_faults(release: str) -> None:
    assert faults_in(FIXTURES / release / "data") == []


@pytest.mark.parametrize(
    "partition", ["sent-none-0", "sent-zstd-0", "transactional-0", "v1-gzip-0"]
)
def test_a_flipped_byte_in_a_batch_is_told_at_that_batch_and_nothing_else(
    tmp_path: Path, partition: str
) -> None:
    copy = Copy(tmp_path, partition)
    chance = random.Random(partition)
    for file in copy.files(".log"):
        starts = batch_positions(file)
        for _ in range(8):
            position = chance.randrange(file.stat().st_size)
            start = max(one for one in starts if one <= position)
            is_last = file == copy.files(".log")[-1] and start == starts[-1]
            if is_last and position - start < BASE_OFFSET_BYTES:
                continue  # nothing follows that could contradict a later offset
            faults = copy.flipped(file, position)
            assert [name for name, _, _ in told(faults)] == [file.name], position
            assert faults[0].position == start, position


def test_a_last_batch_whose_offset_was_raised_is_told_at_that_batch_and_nothing_else(
    plain: Copy,
) -> None:
    file = plain.files(".log")[-1]
    start = batch_positions(file)[-1]
    assert told(plain.flipped(file, start + 5)) == [(file.name, start, Kind.OFFSET_GAP)]


def test_a_leader_epoch_that_was_changed_is_told_at_its_batch(plain: Copy) -> None:
    file = plain.files(".log")[1]
    for start in batch_positions(file):
        for byte in LEADER_EPOCH_BYTES:
            [fault] = plain.flipped(file, start + byte)
            assert (Path(fault.file), fault.position) == (file, start)
            assert fault.kind in (Kind.LEADER_EPOCH, Kind.EPOCH_FILE)


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        (".index", Kind.OFFSET_INDEX),
        (".timeindex", Kind.TIME_INDEX),
        (".snapshot", Kind.DAMAGED_FILE),
    ],
)
def test_a_flipped_byte_beside_the_log_is_told_at_that_file(
    transactional: Copy, suffix: str, kind: Kind
) -> None:
    chance = random.Random(suffix)
    for file in transactional.files(suffix):
        for _ in range(min(6, file.stat().st_size)):
            faults = transactional.flipped(file, chance.randrange(file.stat().st_size))
            assert [(name, what) for name, _, what in told(faults)] == [(file.name, kind)]


def test_an_entry_for_a_transaction_that_was_not_aborted_is_told(transactional: Copy) -> None:
    file = transactional.files(".txnindex")[0]
    low_byte_of_last_offset = 25
    entry_size = 34
    for entry in range(0, file.stat().st_size, entry_size):
        faults = transactional.flipped(file, entry + low_byte_of_last_offset)
        assert told(faults) == [(file.name, entry, Kind.TXN_INDEX)]


def test_a_torn_tail_is_told_at_its_first_byte(plain: Copy) -> None:
    file = plain.files(".log")[-1]
    start = batch_positions(file)[-1]
    for left in (1, 30, file.stat().st_size - start - 1):

        def cut(data: bytearray, left: int = left) -> None:
            del data[start + left :]

        assert told(plain.changed(file, cut)) == [(file.name, start, Kind.TORN_TAIL)]


def test_whole_batches_that_are_gone_from_the_end_are_missed(plain: Copy) -> None:
    file = plain.files(".log")[-1]
    start = batch_positions(file)[-1]
    for index in plain.files(".index")[-1:] + plain.files(".timeindex")[-1:]:
        index.write_bytes(b"")

    def cut(data: bytearray) -> None:
        del data[start:]

    def zero(data: bytearray) -> None:
        data[start:] = bytes(len(data) - start)

    assert told(plain.changed(file, cut)) == [(file.name, start, Kind.LOST)]
    assert told(plain.changed(file, zero)) == [(file.name, start, Kind.UNREADABLE)]


def test_a_cut_in_the_middle_of_a_log_is_told_once(plain: Copy) -> None:
    file = plain.files(".log")[0]
    start = batch_positions(file)[3]

    def cut(data: bytearray) -> None:
        del data[start + 20 :]

    assert told(plain.changed(file, cut)) == [(file.name, start, Kind.UNREADABLE)]


def test_zeros_in_a_batch_are_told_at_that_batch(plain: Copy) -> None:
    file = plain.files(".log")[0]
    starts = batch_positions(file)

    def zero_body(data: bytearray) -> None:
        data[starts[2] + 61 : starts[3]] = bytes(starts[3] - starts[2] - 61)

    def zero_all(data: bytearray) -> None:
        data[starts[2] : starts[3]] = bytes(starts[3] - starts[2])

    assert told(plain.changed(file, zero_body)) == [(file.name, starts[2], Kind.CRC)]
    assert told(plain.changed(file, zero_all)) == [(file.name, starts[2], Kind.UNREADABLE)]


def test_a_batch_that_was_taken_out_leaves_a_gap(plain: Copy) -> None:
    file = plain.files(".log")[0]
    starts = batch_positions(file)
    file.with_suffix(".index").write_bytes(b"")
    time_index = file.with_suffix(".timeindex")
    time_index.write_bytes(time_index.read_bytes()[-12:])  # the segment's latest timestamp

    def take_out(data: bytearray) -> None:
        del data[starts[2] : starts[3]]

    assert told(plain.changed(file, take_out)) == [(file.name, starts[2], Kind.OFFSET_GAP)]


def test_a_segment_that_is_gone_leaves_a_gap(plain: Copy) -> None:
    first, second, third, *_ = plain.files(".log")
    for kind in (".log", ".index", ".timeindex"):
        second.with_suffix(kind).unlink()
    assert told(plain.faults()) == [(third.name, 0, Kind.OFFSET_GAP)]
    assert first.exists()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_told(plain: Copy, suffix: str) -> None:
    file = plain.files(suffix)[0]
    file.unlink()
    assert told(plain.faults()) == [(file.name, None, Kind.MISSING_FILE)]


def test_an_index_without_its_segment_and_other_foreign_files_are_told(plain: Copy) -> None:
    orphan = plain.partition / f"{999_999:020d}.index"
    foreign = [orphan, plain.partition / "notes.txt", plain.log_dir / "core"]
    for file in foreign:
        file.write_bytes(b"")
    (plain.log_dir / "lost+found").mkdir()
    names = {(name, what) for name, _, what in told(plain.faults())}
    expected = {*(file.name for file in foreign), "lost+found"}
    assert names == {(name, Kind.FOREIGN_FILE) for name in expected}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_damaged_checkpoint_is_told(plain: Copy, name: str) -> None:
    file = plain.log_dir / name

    def damage(data: bytearray) -> None:
        data[0:1] = b"x"

    assert told(plain.changed(file, damage)) == [(name, None, Kind.DAMAGED_FILE)]


def test_damaged_leader_epochs_are_told(plain: Copy) -> None:
    file = plain.partition / LEADER_EPOCH_CHECKPOINT
    file.write_text("0\n2\n0 0\n")
    assert told(plain.faults()) == [(file.name, None, Kind.DAMAGED_FILE)]


def test_gaps_are_no_faults_of_a_compacted_log(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "compacted-0")
    assert copy.faults() == []


def test_space_set_aside_in_the_active_segment_is_no_fault(plain: Copy) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        with plain.files(suffix)[-1].open("ab") as file:
            file.write(bytes(24 * 1024))
    assert plain.faults() == []
