"""Damage at random places of logs of Kafka and of ours. Whatever is told is told of the damaged
file, or where it is missed, and once; a damaged log never passes for a sound one."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

import analytics.audit.directories
import analytics.audit.segments
from analytics.audit.faults import Fault, Kind
from storage.checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.fidelity.dirty_logs import DirtyDirectory, new_writers
from tests.unit.analytics.audit.copies import FIXTURES, RELEASES, Copy, batch_positions, faults_in

PARTITIONS = [
    (release, log.parent.name)
    for release in RELEASES
    for log in sorted((FIXTURES / release / "data").glob("*/*.log"))
]
TRIALS = 5
BASE_OFFSET_BYTES = 8


@pytest.fixture(autouse=True)
def looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes here: what looks damaged need not be looked at again."""
    monkeypatch.setattr(analytics.audit.directories, "LOOKS", 1)
    monkeypatch.setattr(analytics.audit.segments, "LOOKS", 1)
    monkeypatch.setattr(analytics.audit.segments, "BETWEEN_LOOKS_SECONDS", 0)


@dataclass(frozen=True)
class Damage:
    """What is done to one file."""

    file: Path
    kind: str
    position: int
    end: int

    @staticmethod
    def at_random(random: Random, partition: Path) -> "Damage":
        files = [one for one in sorted(partition.iterdir()) if one.stat().st_size]
        file = random.choice(files)
        size = file.stat().st_size
        position = random.randrange(size)
        kind = random.choice(["flip", "zero", "cut"])
        ends = {"flip": position + 1, "zero": position + random.choice([1, 8, 64]), "cut": size}
        return Damage(file, kind, position, min(size, ends[kind]))

    def done_to(self, data: bytes) -> bytes:
        before, damaged, behind = (
            data[: self.position],
            data[self.position : self.end],
            data[self.end :],
        )
        if self.kind == "cut":
            return before
        changed = bytes(len(damaged)) if self.kind == "zero" else bytes([damaged[0] ^ 0x10])
        return before + changed + behind


def hold_to_its_promise(damage: Damage, log_dir: Path) -> None:
    good = damage.file.read_bytes()
    damaged = damage.done_to(good)
    if damaged == good:
        return
    is_log = damage.file.suffix == ".log"
    starts = batch_positions(damage.file) if is_log else []
    damage.file.write_bytes(damaged)
    try:
        faults = faults_in(log_dir)
    finally:
        damage.file.write_bytes(good)
    touched = sum(one < damage.end for one in starts) - sum(
        one <= damage.position for one in starts
    )
    most = 1 + touched if damage.kind == "zero" else 1
    assert len(faults) <= most, (damage, faults)
    assert all(is_told_of(fault, damage.file) for fault in faults), (damage, faults)
    if is_log and not _may_pass_for_sound(damage, starts):
        assert faults, damage


def is_told_of(fault: Fault, file: Path) -> bool:
    if file.name == LEADER_EPOCH_CHECKPOINT and fault.kind == Kind.EPOCH_FILE:
        return Path(fault.file).parent == file.parent
    is_missed = fault.kind == Kind.OFFSET_GAP and Path(fault.file).parent == file.parent
    return is_missed or Path(fault.file) == file


def _may_pass_for_sound(damage: Damage, starts: list[int]) -> bool:
    """Nothing follows the last batch that could contradict a later offset."""
    return damage.position - starts[-1] in range(BASE_OFFSET_BYTES)


@pytest.mark.parametrize(("release", "partition"), sorted(set(PARTITIONS)))
def test_damage_to_a_log_of_kafka_is_told_once_and_where_it_is(
    tmp_path: Path, release: str, partition: str
) -> None:
    copy = Copy(tmp_path, partition, release)
    random = Random(f"{release} {partition}")
    for _ in range(TRIALS):
        hold_to_its_promise(Damage.at_random(random, copy.partition), tmp_path)


def test_damage_to_a_log_of_ours_is_told_once_and_where_it_is(tmp_path: Path) -> None:
    directory = DirtyDirectory(tmp_path)
    directory.logs = {
        name: log for name, log in directory.logs.items() if name in ("idempotent", "mixed-0")
    }
    directory.write(new_writers(directory.logs))
    assert faults_in(tmp_path) == []
    random = Random(1)
    for partition in sorted(one for one in tmp_path.iterdir() if one.is_dir()):
        for _ in range(5 * TRIALS):
            hold_to_its_promise(Damage.at_random(random, partition), tmp_path)
