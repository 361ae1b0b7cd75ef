"""Several files damaged at once, at random: logs open, and hold all before the first damage."""

import os
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from storage.log_config import INT64_MAX
from tests.crash.damage import DAMAGES, Damage, Template, damage_file, lose_tail, reopened
from tests.crash.inspection import check_offsets, check_timestamps, read_all
from tests.crash.killing import close_what_crashed
from tests.crash.workload import PARTITIONS

ROUNDS = 15
SHORT_SOAK_ROUNDS = 100
SOAK_ROUNDS = 2_000
TIME_INDEX_ENTRY = 12
BESIDE_SEGMENTS = (
    "disk-*/*/*index",
    "disk-*/*/*.snapshot",
    "disk-*/*/leader-epoch-checkpoint",
    "disk-*/recovery-point-offset-checkpoint",
    "disk-*/replication-offset-checkpoint",
)


class Blow(NamedTuple):
    """A file that was damaged, and how."""

    path: Path
    damage: Damage
    position: int | None

    @property
    def hides_timestamps(self) -> bool:
        """Whether a time index lost just its last entries, which nobody can see.

        That index says of a closed segment how young it is; Kafka believes it as well.
        """
        if self.path.suffix != ".timeindex" or self.damage is not lose_tail:
            return False
        return self.path.stat().st_size % TIME_INDEX_ENTRY == 0

    def __repr__(self) -> str:
        return f"{self.damage.__name__} from {self.position} on of {self.path}"


def damage_some(root: Path, random: Random, patterns: tuple[str, ...]) -> list[Blow]:
    """Damage up to five files."""
    files = sorted({path for pattern in patterns for path in root.glob(pattern)})
    blows: list[Blow] = []
    for path in random.sample(files, min(len(files), random.randrange(1, 6))):
        damage = random.choice(DAMAGES)
        blows.append(Blow(path, damage, damage_file(path, damage, random)))
    return blows


def break_everything_but_segments(template: Template, root: Path, seed: int) -> None:
    random = Random(seed)
    place = random.randrange(len(PARTITIONS))
    state = random.choice(("crashed", "flushed", "stopped"))
    template.copy(state, root, place)
    blows = damage_some(root, random, BESIDE_SEGMENTS)
    are_times_hidden = any(blow.hides_timestamps for blow in blows)
    print(f"seed {seed}: {state}, {PARTITIONS[place]}, {blows}")
    batches = template.model.batches[place]
    for _ in range(2):
        log = reopened(root).get(*PARTITIONS[place])
        assert log is not None
        assert read_all(log, random) == batches
        check_offsets(log, batches, random)
        if not are_times_hidden:
            check_timestamps(log, batches, random)


def break_segments_as_well(template: Template, root: Path, seed: int) -> None:
    random = Random(seed)
    place = random.randrange(len(PARTITIONS))
    template.copy("crashed", root, place)
    segments = {path: path.read_bytes() for path in root.glob("disk-*/*/*.log")}
    blows = damage_some(root, random, ("disk-*/*/*",))
    print(f"seed {seed}: {PARTITIONS[place]}, {blows}")
    damaged = [
        int(path.stem)
        for path, data in segments.items()
        if not path.exists() or path.read_bytes() != data
    ]
    first_damaged = min(damaged, default=INT64_MAX)
    sound = [b for b in template.model.batches[place] if b.last_offset < first_damaged]
    end_of_sound = sound[-1].last_offset + 1 if sound else 0
    log = reopened(root).get(*PARTITIONS[place])
    assert log is not None
    assert log.end_offset >= end_of_sound
    log.truncate_to(end_of_sound)
    assert read_all(log, random) == sound
    again = reopened(root).get(*PARTITIONS[place])
    assert again is not None
    assert again.end_offset == end_of_sound


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_records_are_found_whatever_happened_beside_them(
    template: Template, tmp_path: Path, seed: int
) -> None:
    break_everything_but_segments(template, tmp_path / "logs", seed)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_sound_segments_survive_whatever_happened_to_others(
    template: Template, tmp_path: Path, seed: int
) -> None:
    break_segments_as_well(template, tmp_path / "logs", seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_random_damage_again_and_again(template: Template, tmp_path: Path) -> None:
    rounds = SHORT_SOAK_ROUNDS if os.environ.get("BARNABAS_SOAK") == "short" else SOAK_ROUNDS
    for seed in range(ROUNDS, ROUNDS + rounds):
        break_everything_but_segments(template, tmp_path / f"beside-{seed}", seed)
        break_segments_as_well(template, tmp_path / f"within-{seed}", seed)
        close_what_crashed()
