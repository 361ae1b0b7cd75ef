"""Log directories to be damaged, and the ways to damage a file.

Owns the making of logs with something in every kind of file, copies of them as a crash or a
clean stop leaves them, and what may happen to the bytes of a file. Must not know what a log makes
of it.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

from storage.log_config import INT64_MAX
from storage.log_manager import LogManager
from storage.records.layout import CRC_POSITION, LENGTH_POSITION, LOG_OVERHEAD
from storage.segment_files import partition_directory
from tests.crash.appending import append_to
from tests.crash.journal import Acknowledged, JournalContent
from tests.crash.killing import crash
from tests.crash.model import Model
from tests.crash.workload import (
    CONFIG,
    CONFIGS,
    NOW,
    PARTITIONS,
    Workload,
    config_of,
    log_directories,
)

_APPENDS: Final = 600
_APPENDS_PER_SEGMENT: Final = 150


@dataclass(frozen=True, slots=True)
class Template:
    """Logs that were written once, to be copied; `model` says what is in them."""

    crashed: Path  # nothing was ever flushed
    flushed: Path  # crashed after a checkpoint: all but the last segments count as sound
    stopped: Path
    model: Model

    def copy(self, state: str, target: Path, place: int | None = None) -> Path:
        """A copy of all partitions, or of one."""
        others = [partition_directory(*key) for key in PARTITIONS]
        if place is None:
            others.clear()
        else:
            del others[place]
        shutil.copytree(getattr(self, state), target, ignore=shutil.ignore_patterns(*others))
        return target


def make_template(root: Path) -> Template:
    """Write logs, and keep copies of the three states in which they may be found."""
    crashed, flushed, stopped = root / "crashed", root / "flushed", root / "stopped"
    work = root / "work"
    logs = open_logs(work)
    model = Model()
    model.acknowledge(JournalContent(_write(logs), []))
    shutil.copytree(work, crashed)
    for log in logs.all_logs():
        log.flush()
    logs.checkpoint_recovery_points()
    logs.checkpoint_start_offsets()
    logs.checkpoint_high_watermarks()
    shutil.copytree(work, flushed)
    logs.close()
    shutil.copytree(work, stopped)
    return Template(crashed, flushed, stopped, model)


def open_logs(root: Path) -> LogManager:
    """The logs below a directory, which are flushed only when they are told to."""
    never_flushed = {t: replace(c, flush_messages=INT64_MAX) for t, c in CONFIGS.items()}
    config = replace(CONFIG, flush_messages=INT64_MAX)
    logs = LogManager(log_directories(root), config, lambda: NOW)
    logs.load(never_flushed)
    return logs


def reopened(root: Path) -> LogManager:
    """The logs below a directory, unlocked at once for the next one to open."""
    logs = open_logs(root)
    assert logs.offline_directories == []
    for log in logs.all_logs():
        log.update_high_watermark(log.end_offset)
    crash(logs)
    return logs


def _write(logs: LogManager) -> list[Acknowledged]:
    random = Random(5)
    workload = Workload(random)
    partitions = [
        logs.get_or_create(*key, replace(config_of(key[0]), flush_messages=INT64_MAX))
        for key in PARTITIONS
    ]
    acknowledged: list[Acknowledged] = []
    for number in range(1, _APPENDS):
        if number % _APPENDS_PER_SEGMENT == 0:
            for log in partitions:
                log.roll()
        append = workload.next_append([log.end_offset for log in partitions])
        acknowledged.append(append_to(partitions[append.place], append, number // 100))
    return acknowledged


# Ways to damage a file: what becomes of its bytes; None if the file is gone.
Damage = Callable[[bytes, Random], bytes | None]


def lose_last_byte(data: bytes, random: Random) -> bytes:
    return data[:-1]


def lose_tail(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def lose_content(data: bytes, random: Random) -> bytes:
    return b""


def lose_file(data: bytes, random: Random) -> None:
    return None


def flip_bit(data: bytes, random: Random) -> bytes:
    damaged = bytearray(data)
    if damaged:
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def zero_tail(data: bytes, random: Random) -> bytes:
    kept = random.randrange(len(data) + 1)
    return data[:kept] + bytes(len(data) - kept)


def zero_all(data: bytes, random: Random) -> bytes:
    return bytes(len(data))


def append_garbage(data: bytes, random: Random) -> bytes:
    return data + random.randbytes(random.randrange(1, 200))


def append_zeros(data: bytes, random: Random) -> bytes:
    return data + bytes(random.randrange(1, 5000))


def become_foreign(data: bytes, random: Random) -> bytes:
    return random.randbytes(max(len(data), 20))


DAMAGES: Final[tuple[Damage, ...]] = (
    lose_last_byte,
    lose_tail,
    lose_content,
    lose_file,
    flip_bit,
    zero_tail,
    zero_all,
    append_garbage,
    append_zeros,
    become_foreign,
)


def damage_file(path: Path, damage: Damage, random: Random) -> int | None:
    """Damage a file; returns the position of the first byte that changed, None if none did."""
    data = path.read_bytes()
    damaged = damage(data, random)
    if damaged is None:
        path.unlink()
        return 0
    path.write_bytes(damaged)
    if damaged == data:
        return None
    shorter = min(len(data), len(damaged))
    return next((at for at in range(shorter) if data[at] != damaged[at]), shorter)


def is_detectable(data: bytes, position: int) -> bool:
    """Whether a checksum or a length tells of damage at a position of a `.log` file.

    A batch's offset and leader epoch lie outside its checksum, because leaders set them.
    """
    start = 0
    while start < len(data):
        length = int.from_bytes(data[start + LENGTH_POSITION : start + LOG_OVERHEAD], "big")
        end = start + LOG_OVERHEAD + length
        if position < end:
            return position >= start + CRC_POSITION
        start = end
    return True
