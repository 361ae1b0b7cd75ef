"""Writers that are killed at random moments: what they were told to be written is there."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.killing import Survivors, Writers, close_what_crashed

KILLS = 5
SHORT_SOAK_KILLS = 25
SOAK_KILLS = 250
# Fresh directories after so many lives, lest the checks take longer and longer.
LIVES_PER_DIRECTORY = 5


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as writers:
        yield writers


def soak_kills() -> int:
    return SHORT_SOAK_KILLS if os.environ.get("BARNABAS_SOAK") == "short" else SOAK_KILLS


def survive(writers: Writers, root: Path, kills: int, seed: int) -> None:
    random = Random(seed)
    acknowledged = 0
    for number in range(0, kills, LIVES_PER_DIRECTORY):
        directory = root / str(number)
        directory.mkdir()
        survivors = Survivors(directory, random)
        for _ in range(min(LIVES_PER_DIRECTORY, kills - number)):
            survivors.live(writers)
        acknowledged += survivors.acknowledged
        shutil.rmtree(directory)
        close_what_crashed()
    assert acknowledged > kills, "the writers hardly wrote"


def assert_no_index_was_wrong(messages: list[str]) -> None:
    """A kill loses nothing of what indexes say: a log that has to rebuild one got it wrong."""
    assert [message for message in messages if "rebuilt" in message] == []


def test_acknowledged_records_survive_a_kill(
    writers: Writers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    survive(writers, tmp_path, KILLS, seed=1)
    assert_no_index_was_wrong(caplog.messages)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_acknowledged_records_survive_hundreds_of_kills(
    writers: Writers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seed = int(os.environ.get("BARNABAS_SEED", Random().randrange(1 << 16)))
    print(f"BARNABAS_SEED={seed}")  # shown if the test fails
    survive(writers, tmp_path, soak_kills(), seed)
    assert_no_index_was_wrong(caplog.messages)
