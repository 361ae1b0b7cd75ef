"""Random interleavings of joins, syncs, heartbeats, leaves, time-outs and restarts."""

import logging
import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.unit.broker.groups.group_model import GroupModel

STEPS = 400
RUNS = 12
SOAK_RUNS = 3000
SHORT_SOAK_RUNS = 60

# Interleavings that lead nowhere would show nothing.
WANTED = ("commit", "assignment", "stale", "Empty", "Stable", "PreparingRebalance", "together")


class _Failures(logging.Handler):
    """What timers raise is logged and goes no further."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.records.append(record)


def run(directory: Path, seeds: range) -> None:
    seen: Counter[str] = Counter()
    failures = _Failures()
    logging.getLogger("broker").addHandler(failures)
    try:
        for seed in seeds:
            model = GroupModel(directory / str(seed), seed)
            try:
                model.run(STEPS)
                assert failures.records == []
            except Exception as error:
                raise AssertionError(f"seed {seed}, after {' '.join(model.trace)}") from error
            seen += model.seen
    finally:
        logging.getLogger("broker").removeHandler(failures)
    assert all(seen[one] > len(seeds) for one in WANTED), seen
    assert seen["fenced"], seen
    assert seen["quiet"], seen


def test_random_interleavings_keep_the_invariants(tmp_path: Path) -> None:
    run(tmp_path, range(RUNS))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thousands_of_random_interleavings_keep_the_invariants(tmp_path: Path) -> None:
    short = os.environ.get("BARNABAS_SOAK") == "short"
    first = Random().randrange(1 << 32)
    run(tmp_path, range(first, first + (SHORT_SOAK_RUNS if short else SOAK_RUNS)))
