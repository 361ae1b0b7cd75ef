"""Which leader epoch began at which offset."""

from pathlib import Path

from storage.files import Files
from storage.leader_epochs import LeaderEpochs
from tests.unit.storage.support import make_batch, open_log


def epochs(directory: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs(Files(), str(directory))
    for entry in entries:
        made.assign(*entry)
    return made


def test_assigned_epochs_are_in_the_file_at_once(tmp_path: Path) -> None:
    epochs(tmp_path, (0, 0), (0, 5), (2, 11))
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 11\n"
    reloaded = LeaderEpochs(Files(), str(tmp_path))
    reloaded.load()
    assert reloaded.entries == [(0, 0), (2, 11)]
    assert reloaded.latest_epoch == 2


def test_contradicting_entries_give_way(tmp_path: Path) -> None:
    assert epochs(tmp_path, (1, 0), (2, 10), (3, 20), (2, 12)).entries == [(1, 0), (2, 12)]
    assert epochs(tmp_path, (1, 0), (2, 10), (3, 5)).entries == [(1, 0), (3, 5)]


def test_end_of_an_epoch(tmp_path: Path) -> None:
    known = epochs(tmp_path, (2, 10), (4, 20), (6, 30))
    assert known.end_of(6, 99) == (6, 99)
    assert known.end_of(4, 99) == (4, 30)
    assert known.end_of(5, 99) == (4, 30)
    assert known.end_of(1, 99) == (1, 10)
    assert known.end_of(7, 99) == (-1, -1)
    assert known.end_of(-1, 99) == (-1, -1)
    assert epochs(tmp_path).end_of(0, 99) == (-1, -1)


def test_epoch_at_an_offset(tmp_path: Path) -> None:
    known = epochs(tmp_path, (2, 10), (4, 20))
    assert [known.epoch_at(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 2, 2, 4, 4]


def test_truncation_from_both_ends(tmp_path: Path) -> None:
    known = epochs(tmp_path, (2, 6), (3, 8), (4, 11))
    known.truncate_from_end(11)
    assert known.entries == [(2, 6), (3, 8)]
    known.truncate_from_start(7)
    assert known.entries == [(2, 7), (3, 8)]
    known.truncate_from_start(8)
    assert known.entries == [(3, 8)]
    known.truncate_from_start(100)
    assert known.entries == [(3, 100)]
    known.truncate_from_end(100)
    assert known.entries == []


def test_broken_file_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n7\n")
    known = LeaderEpochs(Files(), str(tmp_path))
    known.load()
    assert known.entries == []


def test_log_assigns_epochs_of_its_batches_and_finds_them_again_after_a_crash(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    for epoch in (0, 0, 3, 3, 5):
        log.append_as_leader(make_batch(), epoch)
    assert log.epochs.entries == [(0, 0), (3, 2), (5, 4)]
    assert log.end_offset_for_epoch(3) == (3, 4)
    assert log.latest_epoch == 5
    (log.directory / "leader-epoch-checkpoint").unlink()
    assert open_log(tmp_path).epochs.entries == [(0, 0), (3, 2), (5, 4)]


def test_follower_takes_the_leaders_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batches = make_batch(leader_epoch=1) + make_batch(base_offset=1, leader_epoch=4)
    log.append_as_follower(bytes(batches))
    assert log.epochs.entries == [(1, 0), (4, 1)]
    log.truncate_to(1)
    assert log.epochs.entries == [(1, 0)]
