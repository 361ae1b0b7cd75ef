"""Several files damaged at once, at random: logs open, and hold all before the first damage."""

import os
from pathlib import Path
from random import Random

import pytest

from storage.segment_files import partition_directory
from tests.crash.damage import DAMAGES, Template, damage_file, reopened
from tests.crash.inspection import check_offsets, check_timestamps, read_all
from tests.crash.workload import PARTITIONS

ROUNDS = 15
SHORT_SOAK_ROUNDS = 100
SOAK_ROUNDS = 2_000
BESIDE_SEGMENTS = (
    "disk-*/*/*index",
    "disk-*/*/*.snapshot",
    "disk-*/*/leader-epoch-checkpoint",
    "disk-*/recovery-point-offset-checkpoint",
    "disk-*/replication-offset-checkpoint",
)


def damage_some(root: Path, random: Random, patterns: tuple[str, ...]) -> list[str]:
    """Damage up to five files; returns what was done, for the one who reads of a failure."""
    files = sorted(path for pattern in patterns for path in root.glob(pattern))
    done: list[str] = []
    for path in random.sample(files, min(len(files), random.randrange(1, 6))):
        damage = random.choice(DAMAGES)
        position = damage_file(path, damage, random)
        done.append(f"{damage.__name__} of {path.relative_to(root)} from {position} on")
    return done


def break_everything_but_segments(template: Template, root: Path, seed: int) -> None:
    random = Random(seed)
    place = random.randrange(len(PARTITIONS))
    state = random.choice(("crashed", "flushed", "stopped"))
    template.copy(state, root, place)
    done = damage_some(root, random, BESIDE_SEGMENTS)
    print(f"seed {seed}: {state}, {PARTITIONS[place]}, {done}")
    batches = template.model.batches[place]
    for _ in range(2):
        log = reopened(root).get(*PARTITIONS[place])
        assert log is not None
        assert read_all(log, random) == batches
        check_offsets(log, batches, random)
        check_timestamps(log, batches, random)


def break_segments_as_well(template: Template, root: Path, seed: int) -> None:
    random = Random(seed)
    place = random.randrange(len(PARTITIONS))
    template.copy("crashed", root, place)
    name = partition_directory(*PARTITIONS[place])
    paths = sorted(root.glob(f"disk-*/{name}/*.log"))
    before = {path: path.read_bytes() for path in paths}
    done = damage_some(root, random, ("disk-*/*/*.log", "disk-*/*/*"))
    print(f"seed {seed}: {PARTITIONS[place]}, {done}")
    whole = next(
        (path for path in paths if not path.exists() or path.read_bytes() != before[path]), None
    )
    first_damaged = int(whole.stem) if whole is not None else 1 << 62
    sound = [b for b in template.model.batches[place] if b.last_offset < first_damaged]
    log = reopened(root).get(*PARTITIONS[place])
    assert log is not None
    assert log.end_offset >= (sound[-1].last_offset + 1 if sound else 0)
    if sound:
        log.truncate_to(sound[-1].last_offset + 1)
        assert read_all(log, random) == sound
    again = reopened(root).get(*PARTITIONS[place])
    assert again is not None
    assert again.end_offset == log.end_offset


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
