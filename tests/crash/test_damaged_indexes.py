"""Indexes, snapshots and checkpoints that are damaged, missing or foreign: no record is lost.

After a crash everything past the recovery point is made anew from the records. Before it, and
after a clean stop, an index is held against the records that it names when it is used.
"""

from pathlib import Path
from random import Random

import pytest

from storage.checkpoint import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from tests.crash.damage import (
    DAMAGES,
    Damage,
    Template,
    append_garbage,
    become_foreign,
    damage_file,
    lose_content,
    lose_file,
    lose_last_byte,
    reopened,
    zero_all,
)
from tests.crash.inspection import check_log, check_offsets, check_timestamps, read_all
from tests.crash.workload import PARTITIONS

CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)
SOUND_OR_GONE = (lose_last_byte, lose_content, lose_file, append_garbage, become_foreign, zero_all)


def check_records(template: Template, root: Path, place: int, random: Random) -> None:
    """All records are there and are found by offset and by timestamp."""
    log = reopened(root).get(*PARTITIONS[place])
    assert log is not None
    batches = template.model.batches[place]
    assert read_all(log, random) == batches
    check_offsets(log, batches, random)
    check_timestamps(log, batches, random)


def check_everything(template: Template, root: Path, place: int, random: Random) -> None:
    log = reopened(root).get(*PARTITIONS[place])
    assert log is not None
    assert read_all(log, random) == template.model.batches[place]
    check_log(log, template.model, place, random)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["index", "timeindex", "txnindex", "snapshot"])
@pytest.mark.parametrize("place", [0, 3, 4])
def test_after_a_crash_indexes_and_snapshots_are_made_anew(
    template: Template, tmp_path: Path, place: int, kind: str, damage: Damage
) -> None:
    root = template.copy("crashed", tmp_path / "logs", place)
    random = Random(f"{place} {kind} {damage.__name__}")
    for path in sorted(root.glob(f"disk-*/*/*.{kind}")):
        damage_file(path, damage, random)
    check_everything(template, root, place, random)
    check_everything(template, root, place, random)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("state", ["flushed", "stopped"])
@pytest.mark.parametrize("place", [0, 3, 4])
def test_indexes_before_the_recovery_point_never_lead_astray(
    template: Template, tmp_path: Path, place: int, state: str, kind: str, damage: Damage
) -> None:
    root = template.copy(state, tmp_path / "logs", place)
    random = Random(f"{place} {state} {kind} {damage.__name__}")
    for path in sorted(root.glob(f"disk-*/*/*.{kind}")):
        damage_file(path, damage, random)
    check_records(template, root, place, random)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("state", ["flushed", "stopped"])
def test_damaged_transaction_indexes_do_not_keep_a_log_from_opening(
    template: Template, tmp_path: Path, state: str, damage: Damage
) -> None:
    """The file exists only where a transaction was aborted: that it is gone cannot be seen."""
    root = template.copy(state, tmp_path / "logs", 0)
    random = Random(f"{state} {damage.__name__}")
    for path in sorted(root.glob("disk-*/*/*.txnindex")):
        damage_file(path, damage, random)
    check_records(template, root, 0, random)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("state", ["flushed", "stopped"])
@pytest.mark.parametrize("place", [0, 4])
def test_producers_are_known_without_their_last_snapshot(
    template: Template, tmp_path: Path, place: int, state: str, damage: Damage
) -> None:
    root = template.copy(state, tmp_path / "logs", place)
    random = Random(f"{place} {state} {damage.__name__}")
    damage_file(max(root.glob("disk-*/*/*.snapshot")), damage, random)
    check_everything(template, root, place, random)


@pytest.mark.parametrize("damage", SOUND_OR_GONE)
@pytest.mark.parametrize("place", [0, 4])
def test_after_a_crash_leader_epochs_are_taken_from_the_batches(
    template: Template, tmp_path: Path, place: int, damage: Damage
) -> None:
    root = template.copy("crashed", tmp_path / "logs", place)
    random = Random(1)
    for path in root.glob(f"disk-*/*/{LEADER_EPOCH_CHECKPOINT}"):
        damage_file(path, damage, random)
    check_everything(template, root, place, random)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("state", ["crashed", "flushed", "stopped"])
def test_damaged_leader_epochs_cost_no_record(
    template: Template, tmp_path: Path, state: str, damage: Damage
) -> None:
    root = template.copy(state, tmp_path / "logs", 0)
    random = Random(f"{state} {damage.__name__}")
    for path in root.glob(f"disk-*/*/{LEADER_EPOCH_CHECKPOINT}"):
        damage_file(path, damage, random)
    check_records(template, root, 0, random)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("state", ["flushed", "stopped"])
def test_damaged_checkpoints_cost_time_but_no_record(
    template: Template, tmp_path: Path, state: str, name: str, damage: Damage
) -> None:
    root = template.copy(state, tmp_path / "logs", 0)
    random = Random(f"{state} {name} {damage.__name__}")
    for disk in root.glob("disk-*"):
        (disk / name).touch()
        damage_file(disk / name, damage, random)
    check_everything(template, root, 0, random)


@pytest.mark.parametrize("offset", [0, 1, 100, 10**6, 2**63 - 1, 2**70])
def test_a_recovery_point_that_is_wrong_is_no_harm(
    template: Template, tmp_path: Path, offset: int
) -> None:
    root = template.copy("flushed", tmp_path / "logs", 0)
    for disk in root.glob("disk-*"):
        (disk / RECOVERY_POINT_CHECKPOINT).write_text(f"0\n1\norders 0 {offset}\n")
    check_everything(template, root, 0, Random(1))


@pytest.mark.parametrize("state", ["crashed", "flushed", "stopped"])
def test_foreign_files_are_left_alone(template: Template, tmp_path: Path, state: str) -> None:
    root = template.copy(state, tmp_path / "logs", 0)
    (partition,) = root.glob("disk-*/orders-0")
    disk = partition.parent
    foreign = [
        disk / "README.txt",
        disk / "recovery-point-offset-checkpoint.tmp",
        partition / "notes.txt",
        partition / "partition.metadata",
        partition / "00000000000000000000.log.bak",
        partition / "00000000000000000000.orig",
        partition / "leader-epoch-checkpoint.tmp",
    ]
    for path in foreign:
        path.write_bytes(b"not ours")
    (partition / "backup").mkdir()
    check_everything(template, root, 0, Random(1))
    assert [path for path in foreign[2:-1] if not path.exists()] == []
    assert (disk / "README.txt").exists()
