"""Leader epochs whose file was lost, torn or emptied by a loss of power."""

from pathlib import Path

import pytest

from storage.checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log import Log
from storage.log_config import LogConfig
from tests.unit.storage.support import make_batch, open_log

CONFIG = LogConfig(segment_bytes=300)
EPOCHS = [(3, 0), (4, 10), (7, 12)]


def write_epochs(directory: Path) -> Log:
    log = open_log(directory, CONFIG)
    for epoch, count in ((3, 10), (4, 2), (7, 5)):
        for _ in range(count):
            log.append_as_leader(make_batch(), epoch)
    log.flush()
    assert log.epochs.entries == EPOCHS
    return log


@pytest.mark.parametrize(
    "content", [None, "", "0\n3\n3 0\n4 10\n7 1", "0\n3\n3 0\n\0\0\0\0\0\0\0\0\0\0", "0\n1\n7 12\n"]
)
def test_lost_epochs_before_the_recovery_point_are_taken_from_the_batches(
    tmp_path: Path, content: str | None
) -> None:
    log = write_epochs(tmp_path)
    path = log.directory / LEADER_EPOCH_CHECKPOINT
    path.unlink()
    if content is not None:
        path.write_text(content)
    for _ in range(2):
        reopened = open_log(tmp_path, CONFIG, recovery_point=log.end_offset)
        assert reopened.epochs.entries == EPOCHS
    assert path.read_text() == "0\n3\n3 0\n4 10\n7 12\n"


def test_rebuilt_epochs_begin_where_the_log_begins(tmp_path: Path) -> None:
    log = write_epochs(tmp_path)
    (log.directory / LEADER_EPOCH_CHECKPOINT).unlink()
    reopened = open_log(tmp_path, CONFIG, recovery_point=17, start_offset=11)
    assert reopened.epochs.entries == [(4, 11), (7, 12)]


def test_a_log_without_epochs_is_not_searched_for_them(tmp_path: Path) -> None:
    old = LogConfig(message_format_version="0.10.2")
    log = open_log(tmp_path, old)
    log.append_as_leader(make_batch(), 3)
    reopened = open_log(tmp_path, old, recovery_point=1)
    assert reopened.epochs.entries == []
