"""Directories as crashes in the middle of a replacement leave them, and some that never should be.

Owns the making of them. Must not know what a broker makes of them.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from storage.environment import Environment
from storage.log import Log
from storage.log_config import LogConfig
from storage.records import BatchBuilder
from tests.fidelity.our_logs import NOW

CONFIG: Final = LogConfig(segment_bytes=1500, index_interval_bytes=200, retention_ms=-1)
KINDS: Final = ("log", "index", "timeindex")
_SEGMENTS: Final = 5
_RANDOM_DIRECTORIES: Final = 40

# A change of a partition's directory.
Change = Callable[[Path], None]


class Replacement:
    """A log, and a segment that is to replace its second and third one."""

    def __init__(self, template: Path) -> None:
        self.template = template
        log = _open(template)
        _write(log, epochs=(0, 1, 3))
        log.roll()
        bases = [segment.base_offset for segment in log.segments]
        assert len(bases) > _SEGMENTS
        self.old = bases[1:3]
        self.new = bases[1]
        log.close()
        # One batch in two stays.
        cleaned = template / "cleaned"
        cleaned.mkdir()
        copy = _open(template, "copy")
        copy.truncate_fully_and_start_at(self.new)
        for batch in _every_second(template, self.old):
            copy.append_as_follower(batch)
        copy.roll()
        copy.close()
        for kind in KINDS:
            shutil.move(copy.directory / _name(self.new, kind), cleaned)
        shutil.rmtree(copy.directory)

    def directories(self) -> Iterator[tuple[str, Change]]:
        """Names and changes: each step of a replacement, and combinations that no step makes."""
        done: list[Change] = []
        numbers = count()
        yield "whole-0", _together(())
        for step in self._steps():
            done.append(step)
            yield f"step-{next(numbers)}", _together(tuple(done))
        for number in range(_RANDOM_DIRECTORIES):
            yield f"random-{number}", self._random(Random(number))

    def _steps(self) -> Iterator[Change]:
        """One file after the other, in the order in which Kafka renames them."""
        yield from (self._put(kind, ".cleaned") for kind in KINDS)
        yield from (_rename(self.new, kind, ".cleaned", ".swap") for kind in KINDS)
        for base in self.old:
            yield from (_rename(base, kind, "", ".deleted") for kind in KINDS)
        yield from (_rename(self.new, kind, ".swap", "") for kind in KINDS)

    def _random(self, random: Random) -> Change:
        changes: list[Change] = []
        for base in self.old:
            changes += [
                _rename(base, kind, "", ".deleted") for kind in KINDS if random.random() < 0.3
            ]
        for kind in KINDS:
            suffix = random.choice((None, ".cleaned", ".swap", ".swap"))
            if suffix is not None:
                changes.append(self._put(kind, suffix))
        return _together(tuple(changes))

    def _put(self, kind: str, suffix: str) -> Change:
        source = self.template / "cleaned" / _name(self.new, kind)

        def put(directory: Path) -> None:
            shutil.copy(source, directory / (source.name + suffix))

        return put


def _open(home: Path, name: str = "template") -> Log:
    environment = Environment(clock=lambda: NOW)
    log = Log(environment, home / f"{name}-0", CONFIG, clean=True)
    log.update_high_watermark(log.end_offset)
    return log


def _write(log: Log, epochs: Iterable[int]) -> None:
    random = Random(5)
    for epoch in epochs:
        for number in range(24):
            builder = BatchBuilder()
            for _ in range(random.randint(1, 4)):
                builder.append(NOW + number * 10, b"key", random.randbytes(30))
            log.append_as_leader(builder.build(), epoch)


def _every_second(template: Path, bases: list[int]) -> Iterator[bytes]:
    log = _open(template)
    for base in bases:
        segment = log.segments.floor(base)
        assert segment is not None
        position = 0
        keeps = True
        while position < segment.size:
            head = segment.descriptor().read(12, position)
            size = 12 + int.from_bytes(head[8:], "big")
            if keeps:
                yield segment.descriptor().read(size, position)
            keeps = not keeps
            position += size
    log.release_files()


def _name(base_offset: int, kind: str) -> str:
    return f"{base_offset:020d}.{kind}"


def _rename(base_offset: int, kind: str, before: str, after: str) -> Change:
    def rename(directory: Path) -> None:
        name = _name(base_offset, kind)
        (directory / (name + before)).rename(directory / (name + after))

    return rename


def _together(changes: tuple[Change, ...]) -> Change:
    def make(directory: Path) -> None:
        for change in changes:
            change(directory)

    return make


def epoch_checkpoints(end_offset: int) -> Iterator[tuple[str, str | None]]:
    """Names and contents of leader-epoch-checkpoint, None for no file at all."""
    yield "epochs-none", None
    lists = {
        "ahead": [(0, 0), (1, 40), (3, end_offset + 10), (4, end_offset + 20)],
        "at-end": [(0, 0), (9, end_offset)],
        "one": [(0, 0)],
        "late": [(3, 100)],
        "empty": [],
    }
    for name, entries in lists.items():
        lines = [f"{epoch} {offset}\n" for epoch, offset in entries]
        yield f"epochs-{name}", f"0\n{len(entries)}\n" + "".join(lines)
