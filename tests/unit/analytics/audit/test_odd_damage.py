"""Damage that takes some thought: files in the wrong place, under the wrong name, cut where an
entry ends, or whole and telling something else. Each is told once, where it is."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analytics.audit.faults import Kind
from storage.checkpoint import (
    CLEANER_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from tests.fidelity.dirty_logs import DirtyDirectory, new_writers
from tests.unit.analytics.audit.copies import Copy, batch_positions, faults_in, told

KINDS = (".log", ".index", ".timeindex")
OFFSET_ENTRY, TIME_ENTRY, TXN_ENTRY = 8, 12, 34

Change = Callable[[bytes], bytes]


@pytest.fixture
def plain(tmp_path: Path) -> Copy:
    return Copy(tmp_path, "sent-none-0")


@pytest.fixture
def transactional(tmp_path: Path) -> Copy:
    return Copy(tmp_path, "transactional-0")


def named(offset: int, kind: str) -> str:
    return f"{offset:020d}{kind}"


def put(copy: Copy, source: Path, offset: int) -> None:
    """A segment's files once more, under another offset."""
    for kind in KINDS:
        shutil.copy(source.with_suffix(kind), copy.partition / named(offset, kind))


def test_a_segment_that_is_there_twice_is_told_at_its_second_place(plain: Copy) -> None:
    put(plain, plain.files(".log")[0], 5000)
    assert told(plain.faults()) == [(named(5000, ".log"), 0, Kind.OFFSET_ORDER)]


def test_a_segment_in_the_place_of_another_is_told(plain: Copy) -> None:
    first, second, *_ = plain.files(".log")
    put(plain, first, int(second.stem))
    assert told(plain.faults()) == [(second.name, 0, Kind.OFFSET_ORDER)]


def test_a_first_batch_below_the_segments_name_is_told_once(plain: Copy) -> None:
    second = plain.files(".log")[1]
    later = int(second.stem) + 3
    put(plain, second, later)
    for kind in KINDS:
        second.with_suffix(kind).unlink()
    assert told(plain.faults()) == [(named(later, ".log"), 0, Kind.OFFSET_ORDER)]


def test_a_name_within_another_segments_offsets_is_told_once(plain: Copy) -> None:
    for kind in KINDS:
        (plain.partition / named(12, kind)).touch()
    first = plain.files(".log")[0]
    beyond = batch_positions(first)[1]  # its offsets are 8 to 14
    assert told(plain.faults()) == [(first.name, beyond, Kind.OFFSET_ORDER)]


def test_a_batch_that_is_gone_from_the_very_beginning_is_missed(plain: Copy) -> None:
    file = plain.files(".log")[0]
    second = batch_positions(file)[1]
    for kind, size in ((".index", 0), (".timeindex", TIME_ENTRY)):
        index = file.with_suffix(kind)
        index.write_bytes(index.read_bytes()[len(index.read_bytes()) - size :])

    def behead(data: bytearray) -> None:
        del data[:second]

    assert told(plain.changed(file, behead)) == [(file.name, 0, Kind.OFFSET_GAP)]


@pytest.mark.parametrize(
    ("suffix", "change", "position"),
    [
        (".index", lambda data: bytes(len(data)), 0),
        (".index", lambda data: data[:-OFFSET_ENTRY] + bytes(OFFSET_ENTRY), 40),
        (".timeindex", lambda data: bytes(len(data)), 0),
        (".timeindex", lambda data: data[:-TIME_ENTRY] + bytes(TIME_ENTRY), 60),
        (".timeindex", lambda data: data[:-TIME_ENTRY], 60),
        (".timeindex", lambda data: b"", 0),
        (".timeindex", lambda data: data[:-5], 60),
    ],
)
def test_an_index_of_a_finished_segment_that_ends_early_is_told_where_it_ends(
    plain: Copy, suffix: str, change: Change, position: int
) -> None:
    file = plain.files(suffix)[0]
    file.write_bytes(change(file.read_bytes()))
    [(name, at, kind)] = told(plain.faults())
    assert (name, at) == (file.name, position)
    assert kind == (Kind.OFFSET_INDEX if suffix == ".index" else Kind.TIME_INDEX)


@pytest.mark.parametrize(
    ("change", "position"),
    [
        (lambda data: data[:-TXN_ENTRY], 2 * TXN_ENTRY),
        (lambda data: b"", 0),
        (lambda data: bytes(len(data)), 0),
        (lambda data: data[:-3], 2 * TXN_ENTRY),
        (lambda data: data + data[-TXN_ENTRY:], 3 * TXN_ENTRY),
        (lambda data: data + b"\xff" * TXN_ENTRY, 3 * TXN_ENTRY),
    ],
)
def test_aborted_transactions_that_an_index_lacks_or_makes_up_are_told(
    transactional: Copy, change: Change, position: int
) -> None:
    file = transactional.files(".txnindex")[0]
    file.write_bytes(change(file.read_bytes()))
    assert told(transactional.faults()) == [(file.name, position, Kind.TXN_INDEX)]


def test_a_transaction_index_that_is_gone_is_missed(transactional: Copy) -> None:
    file = transactional.files(".txnindex")[0]
    file.unlink()
    assert told(transactional.faults()) == [(file.name, 0, Kind.TXN_INDEX)]


def test_every_byte_of_a_transaction_index_but_the_last_stable_offset_is_held_to_the_log(
    transactional: Copy,
) -> None:
    last_stable_offset = range(26, TXN_ENTRY)  # a hint for searches; any lower one is as good
    file = transactional.files(".txnindex")[0]
    for position in range(file.stat().st_size):
        if position % TXN_ENTRY not in last_stable_offset:
            entry = position - position % TXN_ENTRY
            faults = told(transactional.flipped(file, position))
            assert faults == [(file.name, entry, Kind.TXN_INDEX)], position


@pytest.mark.parametrize(
    "text",
    [
        "0\n2\n3 0\n1 10\n",
        "0\n2\n0 50\n1 10\n",
        "0\n2\n0 0\n0 10\n",
        "0\n1\n-1 0\n",
        "7\n1\n0 0\n",
        "0\n1\n0 0",
        "\x00\x01garbage\n",
    ],
)
def test_leader_epochs_that_go_back_or_are_garbage_are_told_at_their_file(
    plain: Copy, text: str
) -> None:
    (plain.partition / LEADER_EPOCH_CHECKPOINT).write_text(text)
    assert told(plain.faults()) == [(LEADER_EPOCH_CHECKPOINT, None, Kind.DAMAGED_FILE)]


def test_leader_epochs_that_disagree_are_told_where_each_epoch_begins(plain: Copy) -> None:
    (plain.partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n1\n0 0\n")
    [(name, position, kind)] = told(plain.faults())
    assert kind == Kind.EPOCH_FILE
    assert int(name.split(".")[0]) == 36
    assert position == 5592  # of offset 72, where epoch 3 begins


@pytest.mark.parametrize(
    "change", [lambda data: data[:-3], lambda data: b"", lambda data: data * 2]
)
def test_a_snapshot_that_was_cut_or_grew_is_told(transactional: Copy, change: Change) -> None:
    file = transactional.files(".snapshot")[-1]
    file.write_bytes(change(file.read_bytes()))
    assert told(transactional.faults()) == [(file.name, None, Kind.DAMAGED_FILE)]


def test_batches_that_compaction_took_whole_are_missed_by_no_index(tmp_path: Path) -> None:
    directory = DirtyDirectory(tmp_path)
    directory.logs = {name: log for name, log in directory.logs.items() if "mixed" in name}
    writers = new_writers(directory.logs)
    for _ in range(2):
        directory.write(writers)
        directory.set_ages()
        directory.compact()
        assert faults_in(tmp_path) == []


def test_a_transaction_index_of_a_log_that_was_cleaned_by_another_is_believed(
    tmp_path: Path,
) -> None:
    copy = Copy(tmp_path, "compacted-txn-0")
    (copy.log_dir / CLEANER_CHECKPOINT).unlink()
    assert [kind for _, _, kind in told(copy.faults()) if kind == Kind.TXN_INDEX] == []


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".swap"])
def test_files_on_their_way_in_or_out_are_no_faults(plain: Copy, suffix: str) -> None:
    file = plain.files(".log")[0]
    shutil.copy(file, f"{file}{suffix}")
    assert plain.faults() == []


@pytest.mark.parametrize(
    "name", ["backup", named(77, ".snapshot"), named(78, ".log"), named(79, ".index")]
)
def test_a_folder_in_a_partition_is_foreign_whatever_its_name(plain: Copy, name: str) -> None:
    target = plain.partition / name
    target.unlink(missing_ok=True)
    target.mkdir()
    assert told(plain.faults()) == [(name, None, Kind.FOREIGN_FILE)]


def test_a_folder_in_the_place_of_a_file_is_told_once(plain: Copy) -> None:
    places = [
        plain.files(".index")[0],
        plain.partition / LEADER_EPOCH_CHECKPOINT,
        plain.log_dir / RECOVERY_POINT_CHECKPOINT,
    ]
    for file in places:
        file.unlink()
        file.mkdir()
    names = {(name, kind) for name, _, kind in told(plain.faults())}
    assert names == {(file.name, Kind.FOREIGN_FILE) for file in places}


def test_a_partition_whose_files_are_all_gone_is_missed(plain: Copy) -> None:
    gone = Copy(plain.log_dir, "sent-zstd-0").partition
    for file in gone.iterdir():
        file.unlink()
    assert told(plain.faults()) == [(gone.name, None, Kind.LOST)]
