"""What may befall the files of a log that is not being written: wrong indexes, torn tails, bytes
that have changed.

Owns the changes to files; a reader must find all that was written, or name what it cannot read.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import Struct

from storage.records.layout import BATCH_HEADER_SIZE, MAGIC_2
from tests.unit.analytics.random_logs import RandomLog, WrittenBatch
from tests.unit.analytics.segments import batch

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


def spoil_indexes(random: Random, found: RandomLog) -> None:
    """Make indexes say nothing, or something else."""
    paths = [*found.directory.glob("*.index"), *found.directory.glob("*.timeindex")]
    for path in sorted(paths):
        if random.random() < 0.5:
            _spoil_index(random, path, found)


def _spoil_index(random: Random, path: Path, found: RandomLog) -> None:
    is_time = path.suffix == ".timeindex"
    entry = _TIME_ENTRY if is_time else _OFFSET_ENTRY
    data = path.read_bytes()
    match random.randrange(6):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(bytes(len(data)))
        case 2:
            path.write_bytes(random.randbytes(random.randrange(200)))
        case 3:
            others = sorted(found.directory.glob(f"*{path.suffix}"))
            path.write_bytes(random.choice(others).read_bytes())
        case 4:
            path.write_bytes(b"".join(_lies(random, entry, path, found)))
        case _:
            # A time index that is whole but for its last entries cannot be told from a right one.
            kept = 1 if is_time else random.randrange(len(data) + 1)
            path.write_bytes(data[:kept])


def _lies(random: Random, entry: Struct, path: Path, found: RandomLog) -> Iterator[bytes]:
    """Entries in order, of offsets, times and positions that there are, put together wrongly."""
    base = int(path.name.partition(".")[0])
    size = path.with_suffix(".log").stat().st_size
    offsets = sorted({max(0, one.last_offset - base) for one in found.batches})
    if entry is _OFFSET_ENTRY:
        positions = sorted(random.sample(range(size + 1), min(size, len(offsets))))
        for offset, position in zip(offsets, positions, strict=False):
            yield entry.pack(offset, position)
        return
    times = sorted({one.max_timestamp for one in found.batches})
    right = {max(0, one.last_offset - base): one.max_timestamp for one in found.batches}
    for time, offset in zip(random.choices(times, k=len(offsets)), offsets, strict=True):
        yield entry.pack(time + (time == right[offset]), offset)


def tear_tail(random: Random, found: RandomLog) -> int:
    """Add half a batch to the last segment; how many bytes."""
    half = bytes(batch(found.end_offset, 3))
    half = half[: random.randrange(12, len(half))]  # a length at least, which is not zero
    with _last_segment(found).open("ab") as file:
        file.write(half)
    return len(half)


def add_zeros(random: Random, found: RandomLog) -> None:
    """What a preallocated file has after its batches."""
    with _last_segment(found).open("ab") as file:
        file.write(bytes(random.randrange(1, 5000)))


def _last_segment(found: RandomLog) -> Path:
    return max(found.directory.glob("*.log"))


def damage_a_batch(random: Random, found: RandomLog) -> WrittenBatch | None:
    """Change a byte of a batch that its checksum covers and no reader goes by."""
    candidates = [
        one
        for one in found.batches
        if one.records and not one.is_control and one.size > _header_size(one)
    ]
    if not candidates:
        return None
    chosen = random.choice(candidates)
    path, position = place_of(found, chosen)
    at = position + random.randrange(_header_size(chosen), chosen.size)
    with path.open("r+b") as file:
        file.seek(at)
        old = file.read(1)[0]
        file.seek(at)
        file.write(bytes([old ^ random.randrange(1, 256)]))
    chosen.is_damaged = True
    return chosen


def _header_size(one: WrittenBatch) -> int:
    return BATCH_HEADER_SIZE if one.magic == MAGIC_2 else 26


def place_of(found: RandomLog, wanted: WrittenBatch) -> tuple[Path, int]:
    """The segment of a batch, and where in it the batch begins."""
    paths = sorted(found.directory.glob("*.log"))
    bases = [int(path.stem) for path in paths]
    index = max(n for n, base in enumerate(bases) if base <= wanted.base_offset)
    before = (one for one in found.batches if bases[index] <= one.base_offset < wanted.base_offset)
    return paths[index], sum(one.size for one in before)
