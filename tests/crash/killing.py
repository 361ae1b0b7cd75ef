"""Lives and deaths of writers, as a test sees them.

Owns the process that forks the writers (writer.py), and the course of a life: a writer is
started and killed, its logs are opened again and held against the model.
"""

import gc
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType

from storage.append_info import AppendOrigin
from storage.log_manager import LogManager
from storage.records.batches import parse_header
from storage.records.layout import MAGIC_2
from tests.crash.inspection import check_logs
from tests.crash.journal import Append, read_journal
from tests.crash.model import Model, batches_at
from tests.crash.workload import CONFIG, CONFIGS, NOW, PARTITIONS, log_directories
from tests.crash.writer import Life

PROJECT = Path(__file__).parents[2]


class WriterFailed(AssertionError):
    """A writer did not die as it should have; carries what it printed."""


class Writers:
    """The process that forks writers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.writer"],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Writers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def live(self, life: Life) -> None:
        """Start a writer and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(life.to_line(), file=self._process.stdin, flush=True)
        status = self._process.stdout.readline().strip()
        if status != str(-signal.SIGKILL):
            raise WriterFailed(f"A writer ended with status {status}: {life}")


@dataclass(slots=True)
class Survivors:
    """Log directories that live through one writer after another."""

    root: Path
    random: Random
    model: Model = field(default_factory=Model)
    lives: int = 0
    acknowledged: int = 0
    kept_unacknowledged: int = 0

    def live(self, writers: Writers) -> None:
        """Have a writer killed, open what it left, and check it."""
        self.lives += 1
        journal = self.root / f"journal-{self.lives}"
        writers.live(self._next_life(journal))
        content = read_journal(journal)
        self.model.acknowledge(content)
        self.acknowledged += len(content.acknowledged)
        logs = open_logs(self.root)
        extra = check_logs(logs, self.model, content.unresolved, self.random)
        self.kept_unacknowledged += sum(1 for count in extra if count)
        for append in content.unresolved:
            self._send_again(logs, append, was_kept=extra[append.place] > 0)
        if self.random.random() < 0.5:
            logs.close()
        else:
            crash(logs)

    def _next_life(self, journal: Path) -> Life:
        is_timed = self.random.random() < 0.5
        return Life(
            directory=str(self.root),
            journal=str(journal),
            seed=self.random.randrange(1 << 32),
            serial=self.lives * 1_000_000,
            leader_epoch=self.lives * 1_000,
            producers=[asdict(producer) for producer in self.model.producers().values()],
            killed_after_ms=self.random.uniform(20, 300) if is_timed else None,
            killed_at_call=None if is_timed else self.random.randrange(1, 2_000),
        )

    def _send_again(self, logs: LogManager, append: Append, *, was_kept: bool) -> None:
        """An idempotent producer that got no answer repeats its batch: it is there once then."""
        header = parse_header(append.payload)
        is_idempotent = header.magic == MAGIC_2 and header.has_producer_id
        if append.origin is not AppendOrigin.CLIENT or not is_idempotent:
            return
        log = logs.get(*PARTITIONS[append.place])
        if log is None:
            return
        expected = self.model.end_offset(append.place)
        info = log.append_as_leader(bytearray(append.payload), max(log.latest_epoch, 0))
        assert info.is_duplicate == was_kept
        if was_kept:
            assert info.last_offset == expected - 1
        else:
            self.model.batches[append.place] += batches_at(append, expected)


def open_logs(root: Path) -> LogManager:
    logs = LogManager(log_directories(root), CONFIG, lambda: NOW)
    logs.load(CONFIGS)
    assert not logs.offline_directories
    return logs


def crash(logs: LogManager) -> None:
    """Leave the logs as they are, as far as another process can tell."""
    for directory in logs.directories:
        directory.unlock()


def close_what_crashed() -> None:
    """A manager that was left to itself holds its files until its last reference is found."""
    gc.collect()
