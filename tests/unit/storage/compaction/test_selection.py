"""Which logs are cleaned, and how much of them: dirty ratio, lags, checkpoints that do not fit."""

from dataclasses import replace
from pathlib import Path

import pytest

from storage.compaction.compact import compact_log
from storage.compaction.selection import Candidates, examine
from storage.log import Log
from tests.unit.storage.compaction.support import (
    COMPACTED,
    append,
    append_segments,
    end_transaction,
    keyed_batch,
    open_compacted,
    transactional,
)
from tests.unit.storage.support import NOW, ManualClock

PAIRS = [(b"a", b"1"), (b"b", b"2")]


def three_segments(directory: Path, clock: ManualClock, **changes: object) -> Log:
    """Segments at 0, 2 and 4, each 100 ms younger than the one before, and an empty active one."""
    log = open_compacted(directory, replace(COMPACTED, **changes), clock)  # type: ignore[arg-type]
    for _ in range(3):
        append_segments(log, PAIRS)
        clock.advance(100)
    return log


def test_all_but_the_active_segment_may_be_cleaned(tmp_path: Path) -> None:
    log = three_segments(tmp_path, ManualClock())
    append_segments(log, PAIRS)
    append(log, keyed_batch(PAIRS))
    found = examine(log, NOW)
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 8)
    assert found.cleanable_bytes == log.size_in_bytes - log.segments.active.size
    assert found.dirty_ratio == 1.0


def test_the_dirty_ratio_is_that_of_what_may_be_cleaned(tmp_path: Path) -> None:
    log = three_segments(tmp_path, ManualClock(), min_cleanable_dirty_ratio=0.5)
    log.cleaned_offset = 4
    found = examine(log, NOW)
    assert found.dirty_ratio == pytest.approx(1 / 3)
    assert not found.is_due
    log.cleaned_offset = 2
    assert examine(log, NOW).is_due
    log.update_config(replace(log.config, min_cleanable_dirty_ratio=2 / 3))
    assert not examine(log, NOW).is_due, "it must be above the bound"


def test_an_empty_or_clean_log_is_not_due(tmp_path: Path) -> None:
    log = open_compacted(tmp_path, min_cleanable_dirty_ratio=0.0)
    assert not examine(log, NOW).is_due
    append_segments(log, PAIRS)
    assert examine(log, NOW).is_due
    log.cleaned_offset = 2
    assert not examine(log, NOW).is_due


def test_what_is_younger_than_the_least_lag_is_left(tmp_path: Path) -> None:
    clock = ManualClock()
    log = three_segments(tmp_path, clock, min_compaction_lag_ms=250)
    assert examine(log, clock.now).first_uncleanable_offset == 2
    assert examine(log, clock.now + 50).first_uncleanable_offset == 4
    assert examine(log, clock.now + 1000).first_uncleanable_offset == 6
    assert examine(log, NOW).cleanable_bytes == 0


def test_what_is_older_than_the_longest_lag_is_due_however_little_it_is(tmp_path: Path) -> None:
    clock = ManualClock()
    log = three_segments(
        tmp_path, clock, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000
    )
    assert not examine(log, NOW + 1_000).is_due
    found = examine(log, NOW + 1_001)
    assert (found.delay_ms, found.is_due) == (1, True)
    log.cleaned_offset = 2
    assert not examine(log, NOW + 1_001).is_due
    assert examine(log, NOW + 1_101).is_due


def test_undecided_transactions_are_left(tmp_path: Path) -> None:
    log = open_compacted(tmp_path)
    append_segments(log, PAIRS)
    append(log, keyed_batch(PAIRS, producer=transactional(7)))
    append_segments(log, PAIRS, PAIRS)
    assert examine(log, NOW).first_uncleanable_offset == 2
    end_transaction(log, 7, commits=True)
    assert examine(log, NOW).first_uncleanable_offset == 8


@pytest.mark.parametrize("offset", [1, 99])
def test_a_cleaned_offset_outside_the_log_counts_for_nothing(tmp_path: Path, offset: int) -> None:
    log = three_segments(tmp_path, ManualClock())
    log.advance_start_offset(2)
    log.cleaned_offset = offset
    assert examine(log, NOW).first_dirty_offset == 2


def test_a_cut_takes_the_cleaned_offset_along(tmp_path: Path) -> None:
    log = three_segments(tmp_path, ManualClock())
    compact_log(log)
    assert log.cleaned_offset == 6
    log.truncate_to(5)
    assert log.cleaned_offset == log.segments.active.base_offset
    assert examine(log, NOW).first_dirty_offset == log.segments.active.base_offset


def test_only_compacted_logs_that_are_left_in_peace_are_considered(tmp_path: Path) -> None:
    candidates = Candidates()
    log = three_segments(tmp_path, ManualClock())
    assert candidates.consider(log, NOW) is not None
    log.update_config(replace(COMPACTED, cleanup_policy=frozenset({"delete"})))
    assert candidates.consider(log, NOW) is None
    log.update_config(replace(COMPACTED, cleanup_policy=frozenset({"delete", "compact"})))
    assert candidates.consider(log, NOW) is not None
    candidates.in_progress.add(log)
    assert candidates.consider(log, NOW) is None
    candidates.in_progress.clear()
    candidates.uncleanable.add(log)
    assert candidates.consider(log, NOW) is None


def test_a_log_that_failed_waits_twice_as_long_each_time(tmp_path: Path) -> None:
    candidates = Candidates()
    log = three_segments(tmp_path, ManualClock())
    now = NOW
    for pause_ms in (15_000, 30_000, 60_000):
        candidates.postpone(log, now)
        assert not candidates.may_clean(log, now + pause_ms - 1)
        now += pause_ms
        assert candidates.may_clean(log, now)
    candidates.succeeded(log)
    candidates.postpone(log, now)
    assert candidates.may_clean(log, now + 15_000)
