"""The power goes: what was flushed is there, and what follows is a part of what was written."""

import os
import shutil
from pathlib import Path
from random import Random

import pytest

from storage.log_manager import LogManager
from tests.crash.appending import append_to
from tests.crash.damage import reopened
from tests.crash.inspection import check_log, read_all
from tests.crash.killing import close_what_crashed, crash
from tests.crash.model import Model, batches_at
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
            assert log.end_offset >= flushed[log.name], f"{log.name} lost what was flushed"
            found = read_all(log, self.random)
            assert found == written[: len(found)], f"{log.name} holds what was not written"
            self.model.batches[place] = found
            check_log(log, self.model, place, self.random)


def survive(root: Path, lives: int, seed: int) -> None:
    random = Random(seed)
    for number in range(0, lives, LIVES_PER_DIRECTORY):
        directory = root / str(number)
        directory.mkdir()
        logs = Forgetful(directory, random)
        for _ in range(LIVES_PER_DIRECTORY):
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
