"""`.log` files that a crash or a bad disk has damaged: all before the damage is kept."""

from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from storage.append_info import ReadIsolation
from storage.segment_files import partition_directory
from tests.crash.damage import (
    DAMAGES,
    Damage,
    Template,
    append_garbage,
    append_zeros,
    damage_file,
    flip_bit,
    is_detectable,
    lose_content,
    lose_file,
    lose_last_byte,
    lose_tail,
    reopened,
    zero_tail,
)
from tests.crash.inspection import check_log, check_offsets, check_timestamps, read_all
from tests.crash.model import Model, StoredBatch
from tests.crash.workload import PARTITIONS


class Damaged(NamedTuple):
    """A segment before and after its damage."""

    before: bytes
    after: bytes
    position: int
    # Batches of the log in earlier segments, in this one, and in later ones.
    earlier: list[StoredBatch]
    own: list[StoredBatch]
    later: list[StoredBatch]

    @property
    def kept(self) -> list[StoredBatch]:
        """The batches of the segment that end before the damage begins."""
        kept: list[StoredBatch] = []
        end = 0
        for batch in self.own:
            end += len(batch.content)
            if end > self.position:
                break
            kept.append(batch)
        return kept

    @property
    def is_cut(self) -> bool:
        """Whether something is left in the file that is no batch."""
        return len(self.after) > sum(len(batch.content) for batch in self.kept)


def segments_of(root: Path, place: int) -> list[Path]:
    name = partition_directory(*PARTITIONS[place])
    return sorted(root.glob(f"disk-*/{name}/*.log"))


def damage_segment(
    template: Template, root: Path, place: int, segment: int, damage: Damage, random: Random
) -> Damaged | None:
    """Damage a segment of a partition; None if that changed nothing."""
    path = segments_of(root, place)[segment]
    before = path.read_bytes()
    position = damage_file(path, damage, random)
    if position is None:
        return None
    bases = [int(path.stem) for path in segments_of(template.crashed, place)]
    base = bases[segment]
    following = next((other for other in bases if other > base), 1 << 62)
    batches = template.model.batches[place]
    return Damaged(
        before,
        path.read_bytes() if path.exists() else b"",
        position,
        [batch for batch in batches if batch.first_offset < base],
        [batch for batch in batches if base <= batch.first_offset < following],
        [batch for batch in batches if batch.first_offset >= following],
    )


def found_in(root: Path, place: int, random: Random) -> list[StoredBatch]:
    log = reopened(root).get(*PARTITIONS[place])
    assert log is not None
    return read_all(log, random)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("segment", [0, 1, -1])
@pytest.mark.parametrize("place", range(len(PARTITIONS)))
def test_after_a_crash_everything_before_the_damage_is_kept(
    template: Template, tmp_path: Path, place: int, segment: int, damage: Damage
) -> None:
    root = template.copy("crashed", tmp_path / "logs", place)
    random = Random(f"{place} {segment} {damage.__name__}")
    damaged = damage_segment(template, root, place, segment, damage, random)
    if damaged is None:
        assert found_in(root, place, random) == template.model.batches[place]
        return
    kept = damaged.earlier + damaged.kept
    if not is_detectable(damaged.before, damaged.position):
        assert found_in(root, place, random)[: len(kept)] == kept
        return
    expected = kept if damaged.is_cut else kept + damaged.later
    log = reopened(root).get(*PARTITIONS[place])
    assert log is not None
    assert read_all(log, random) == expected
    if len(expected) > len(kept):  # a hole, after which producers are not what they were
        check_offsets(log, expected, random)
        check_timestamps(log, expected, random)
        return
    model = Model()
    model.batches[place] = expected
    check_log(log, model, place, random)
    assert found_in(root, place, random) == expected


@pytest.mark.parametrize(
    ("state", "damage"),
    [
        ("flushed", lose_last_byte),
        ("flushed", flip_bit),
        ("flushed", zero_tail),
        ("flushed", append_zeros),
        ("stopped", lose_last_byte),
        ("stopped", lose_tail),
        ("stopped", append_garbage),
        ("stopped", append_zeros),
    ],
)
@pytest.mark.parametrize("place", range(len(PARTITIONS)))
def test_a_damaged_tail_is_cut_off_even_behind_the_recovery_point(
    template: Template, tmp_path: Path, place: int, state: str, damage: Damage
) -> None:
    """After a clean stop, only what is no batch is noticed: checksums are not looked at then."""
    root = template.copy(state, tmp_path / "logs", place)
    random = Random(f"{place} {state} {damage.__name__}")
    damaged = damage_segment(template, root, place, -1, damage, random)
    if damaged is None:
        assert found_in(root, place, random) == template.model.batches[place]
    elif is_detectable(damaged.before, damaged.position):
        assert found_in(root, place, random) == damaged.earlier + damaged.kept


@pytest.mark.parametrize("damage", [lose_content, lose_file])
@pytest.mark.parametrize("state", ["crashed", "flushed", "stopped"])
def test_reads_go_on_behind_a_segment_that_is_gone(
    template: Template, tmp_path: Path, state: str, damage: Damage
) -> None:
    root = template.copy(state, tmp_path / "logs", 0)
    random = Random(1)
    damaged = damage_segment(template, root, 0, 1, damage, random)
    assert damaged is not None
    log = reopened(root).get(*PARTITIONS[0])
    assert log is not None
    lost = damaged.own[0].first_offset
    read = log.read(lost, 1, ReadIsolation.LOG_END)
    assert read.slice.length == len(damaged.later[0].content)
    assert read_all(log, random) == damaged.earlier + damaged.later
