"""Taking over what was cleaned, from logs that have changed meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest

from storage.compaction.cleaning import Cleaning
from storage.compaction.pending import PendingCleaning, StaleCleaningError
from storage.compaction.selection import examine
from storage.log import Log
from storage.segment_files import CLEANED_SUFFIX
from tests.unit.storage.compaction.support import (
    SETTINGS,
    append_segments,
    file_names,
    open_compacted,
    pairs_of,
)
from tests.unit.storage.support import NOW

OLD = [(b"key", b"old"), (b"other", b"kept")]
NEW = [(b"key", b"%900d" % 1)]
CHANGES: dict[str, Callable[[Log], None]] = {
    "cut": lambda log: _do(log.truncate_to(1)),
    "emptied": lambda log: log.truncate_fully_and_start_at(7),
    "deleted": lambda log: log.rename_directory(f"topic-0.{'0' * 32}-delete"),
    "offline": lambda log: log.go_offline(),
    "retention": lambda log: log.delete_segments([log.segments.first]),
}


def _do(_: object) -> None:
    """For its effect only."""


def begin(directory: Path) -> tuple[Log, PendingCleaning, Cleaning]:
    log = open_compacted(directory)
    append_segments(log, OLD, NEW, NEW)
    pending = PendingCleaning(examine(log, NOW), SETTINGS)
    return log, pending, Cleaning(log.environment, pending.job, lambda _: None)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_log_takes_nothing_over(tmp_path: Path, change: Callable[[Log], None]) -> None:
    log, pending, cleaning = begin(tmp_path)
    group = next(cleaning.run())
    change(log)
    segments = list(log.segments)
    with pytest.raises(StaleCleaningError):
        pending.take_over(group)
    assert list(log.segments) == segments


@pytest.mark.parametrize("name", ["cut", "emptied"])
def test_a_log_that_is_cut_after_the_last_group_is_not_taken_for_clean(
    tmp_path: Path, name: str
) -> None:
    log, pending, cleaning = begin(tmp_path)
    for group in cleaning.run():
        pending.take_over(group)
    CHANGES[name](log)
    with pytest.raises(StaleCleaningError):
        pending.complete(cleaning.summary)
    assert log.cleaned_offset is None


def test_appends_meanwhile_do_no_harm(tmp_path: Path) -> None:
    log, pending, cleaning = begin(tmp_path)
    for group in cleaning.run():
        append_segments(log, OLD)
        pending.take_over(group)
    pending.complete(cleaning.summary)
    assert log.cleaned_offset == 4
    assert pairs_of(log)[:2] == [(1, b"other", b"kept"), (3, b"key", NEW[0][1])]


def test_what_is_given_up_leaves_no_file(tmp_path: Path) -> None:
    log, pending, cleaning = begin(tmp_path)
    next(cleaning.run())
    assert any(name.endswith(CLEANED_SUFFIX) for name in file_names(log))
    pending.give_up()
    assert not any(name.endswith(CLEANED_SUFFIX) for name in file_names(log))
