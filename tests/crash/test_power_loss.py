"""The power goes: what was flushed is there, and what follows is a part of what was written."""

import os
import shutil
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from storage.log import Log
from storage.log_manager import LogManager
from tests.crash.appending import append_to
from tests.crash.damage import reopened
from tests.crash.inspection import check_log, read_all
from tests.crash.killing import close_what_crashed, crash
from tests.crash.model import Model, StoredBatch, batches_at
from tests.crash.power import ForgetfulFiles
from tests.crash.workload import (
    CONFIG,
    CONFIGS,
    NOW,
    PARTITIONS,
    Workload,
    config_of,
    log_directories,
)

LIVES = 8
SHORT_SOAK_LIVES = 50
SOAK_LIVES = 1_000
LIVES_PER_DIRECTORY = 4
MOST_APPENDS = 400


class Forgetful:
    """Log directories on a forgetful disk, and what has been written to them."""

    def __init__(self, root: Path, random: Random) -> None:
        self.root = root
        self.random = random
        self.model = Model()
        self.lives = 0
        self.has_holes = False

    def live(self) -> None:
        """Write, lose the power in the midst of it, and check what is left."""
        directory = self.root / str(self.lives)
        directory.mkdir(exist_ok=True)
        files = ForgetfulFiles(directory)
        logs = LogManager(log_directories(directory), CONFIG, lambda: NOW, files)
        logs.load(CONFIGS)
        self._write(logs)
        flushed = {log.name: log.recovery_point for log in logs.all_logs()}
        if self.random.random() < 0.2:
            logs.close()
            flushed = {log.name: log.end_offset for log in logs.all_logs()}
        crash(logs)
        self.lives += 1
        after = self.root / str(self.lives)
        files.lose_power(after, self.random)
        self._check(after, flushed)
        shutil.rmtree(directory)

    def _write(self, logs: LogManager) -> None:
        workload = Workload(self.random, self.lives * 1_000_000, self.model.producers())
        partitions = [logs.get_or_create(*key, config_of(key[0])) for key in PARTITIONS]
        for _ in range(self.random.randrange(MOST_APPENDS)):
            if self.random.random() < 0.05:
                log = self.random.choice(partitions)
                chores = (log.flush, log.roll, logs.flush_due, logs.checkpoint_recovery_points)
                self.random.choice(chores)()
            append = workload.next_append([log.end_offset for log in partitions])
            written = append_to(partitions[append.place], append, self.lives)
            self.model.batches[append.place] += batches_at(append, written.first_offset)

    def _check(self, root: Path, flushed: dict[str, int]) -> None:
        logs = reopened(root)
        for place, (topic, partition) in enumerate(PARTITIONS):
            log = logs.get(topic, partition)
            written = self.model.batches[place]
            if log is None:
                assert flushed[f"{topic}-{partition}"] == 0
                written.clear()
                continue
            found = self._read_as_far_as_possible(log)
            safe = [batch for batch in written if batch.last_offset < flushed[log.name]]
            assert found[: len(safe)] == safe, f"{log.name} lost what was flushed"
            if found == written[: len(found)] and log.end_offset == end_of(found):
                self.model.batches[place] = found
                check_log(log, self.model, place, self.random)
            else:
                self.has_holes = True
                check_holes(log, found, written)

    def _read_as_far_as_possible(self, log: Log) -> list[StoredBatch]:
        """All batches; behind the last one there may be nothing but segments that lost all."""
        end = max((s.next_offset() for s in log.segments if s.size), default=log.start_offset)
        return read_all(log, self.random, end)


def end_of(batches: list[StoredBatch]) -> int:
    return batches[-1].last_offset + 1 if batches else 0


def check_holes(log: Log, found: list[StoredBatch], written: list[StoredBatch]) -> None:
    """A rolled segment that was not flushed may have lost its end, and a later one not.

    Apache Kafka does not see that either: where a log was compacted, such holes are in order.
    """
    places = {batch: number for number, batch in enumerate(written)}
    assert all(batch in places for batch in found), f"{log.name} holds what was not written"
    for before, after in pairwise(found):
        if places[after] != places[before] + 1:
            segment = log.segments.floor(after.first_offset)
            assert segment is not None
            assert segment.base_offset > before.last_offset, f"{log.name}: {after}"


def survive(root: Path, lives: int, seed: int) -> None:
    random = Random(seed)
    for number in range(0, lives, LIVES_PER_DIRECTORY):
        directory = root / str(number)
        directory.mkdir()
        logs = Forgetful(directory, random)
        for _ in range(LIVES_PER_DIRECTORY):
            if not logs.has_holes:
                logs.live()
        shutil.rmtree(directory)
        close_what_crashed()


def test_flushed_records_survive_a_loss_of_power(tmp_path: Path) -> None:
    survive(tmp_path, LIVES, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_flushed_records_survive_losing_power_again_and_again(tmp_path: Path) -> None:
    seed = int(os.environ.get("BARNABAS_SEED", Random().randrange(1 << 16)))
    print(f"BARNABAS_SEED={seed}")
    is_short = os.environ.get("BARNABAS_SOAK") == "short"
    survive(tmp_path, SHORT_SOAK_LIVES if is_short else SOAK_LIVES, seed)
