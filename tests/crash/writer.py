"""A process that writes to logs until it is killed, again and again.

    python -m tests.crash.writer        reads one life per line, answers with one line each

Owns the writing side: a single-threaded parent that has everything imported forks a writer for
each life, so that a life of 50 ms does not begin with an interpreter's start. A writer is killed
by its parent after some time, or kills itself in the middle of a given system call.
"""

import os
import select
import signal
import sys
import threading
import traceback
from dataclasses import asdict, dataclass, field
from json import dumps, loads
from pathlib import Path
from random import Random
from typing import Any, Final

from storage.log import Log
from storage.log_manager import LogManager
from tests.crash.appending import append_to
from tests.crash.dying import DyingFiles
from tests.crash.journal import Journal
from tests.crash.workload import (
    CONFIG,
    CONFIGS,
    NOW,
    PARTITIONS,
    Producer,
    Workload,
    config_of,
    log_directories,
)

_PATIENCE_SECONDS: Final = 20.0
_FAILED: Final = 3


@dataclass(frozen=True, slots=True)
class Life:
    """What a writer is to do, and how it ends."""

    directory: str
    journal: str
    seed: int
    serial: int = 0
    leader_epoch: int = 0
    producers: list[dict[str, Any]] = field(default_factory=list)
    # After so many milliseconds, or in the system call with this number, half done or not.
    killed_after_ms: float | None = None
    killed_at_call: int | None = None

    def to_line(self) -> str:
        return dumps(asdict(self))


def write_until_killed(life: Life) -> None:
    """Load the logs and append to them; does not return."""
    random = Random(life.seed)
    files = None
    if life.killed_at_call is not None:
        files = DyingFiles(life.killed_at_call, random, end=_kill_this_process)
    logs = LogManager(log_directories(Path(life.directory)), CONFIG, lambda: NOW, files)
    logs.load(CONFIGS)
    partitions = [logs.get_or_create(*key, config_of(key[0])) for key in PARTITIONS]
    if files is None:
        threading.Thread(target=_keep_flushing, args=(logs,), daemon=True).start()
    writer = Writer(logs, partitions, life, random)
    while True:
        writer.step()


def _kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _keep_flushing(logs: LogManager) -> None:
    """What a broker's threads do meanwhile."""
    pause = threading.Event()
    while not pause.wait(0.005):
        logs.flush_due()
        logs.checkpoint_recovery_points()
        logs.remove_deleted()


class Writer:
    """Appends to all partitions, and does now and then what a broker does besides."""

    def __init__(self, logs: LogManager, partitions: list[Log], life: Life, random: Random) -> None:
        self._logs = logs
        self._partitions = partitions
        self._random = random
        self._leader_epoch = life.leader_epoch
        self._journal = Journal(Path(life.journal))
        producers = [Producer(**fields) for fields in life.producers]
        self._workload = Workload(
            random, life.serial, {producer.producer_id: producer for producer in producers}
        )

    def step(self) -> None:
        if self._random.random() < 0.02:
            self._do_something_else()
        ends = [log.end_offset for log in self._partitions]
        append = self._workload.next_append(ends)
        log = self._partitions[append.place]
        self._journal.intend(append)
        _, first_offset, last_offset = append_to(log, append, self._leader_epoch)
        self._journal.acknowledge(first_offset, last_offset)

    def _do_something_else(self) -> None:
        log = self._random.choice(self._partitions)
        self._random.choice(
            (
                log.flush,
                log.roll,
                self._logs.flush_due,
                self._logs.checkpoint_recovery_points,
                self._logs.checkpoint_high_watermarks,
                self._elect_again,
            )
        )()

    def _elect_again(self) -> None:
        self._leader_epoch += 1
        for log, (topic, _) in zip(self._partitions, PARTITIONS, strict=True):
            if topic == "orders":
                log.assign_epoch_start(self._leader_epoch, log.end_offset)


def main() -> None:
    """Live one life per line of input."""
    for line in sys.stdin:
        life = Life(**loads(line))
        # Held open by the writer alone, so that its end closes it.
        alive, held = os.pipe()
        pid = os.fork()
        if pid == 0:
            _be_the_writer(life)
        os.close(held)
        _end(pid, alive, life)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _be_the_writer(life: Life) -> None:
    try:
        write_until_killed(life)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(_FAILED)


def _end(pid: int, alive: int, life: Life) -> None:
    """Kill a writer when its time has come, if it has not done so itself."""
    patience = _PATIENCE_SECONDS
    if life.killed_after_ms is not None:
        patience = life.killed_after_ms / 1000
    try:
        select.select([alive], [], [], patience)
        os.kill(pid, signal.SIGKILL)
    finally:
        os.close(alive)


if __name__ == "__main__":
    main()
