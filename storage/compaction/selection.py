"""Which log is worth cleaning, and how much of it may be cleaned.

Owns the choice: dirty ratio, compaction lags, and the logs that are left alone because a
cleaning of theirs is under way or has failed. Must not know how a log is cleaned.

        clean                     dirty
    +-----------+------------------------------+-------------------+
    0      first dirty offset     first uncleanable offset     end of log
"""

import logging
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

from storage.log import Log
from storage.log_config import INT64_MAX

logger = logging.getLogger(__name__)

# A log whose cleaning was interrupted waits this long before the next try, then twice as long...
_FIRST_PAUSE_MS: Final = 15_000
# ...up to this long.
_LONGEST_PAUSE_MS: Final = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class CleanableLog:
    """How dirty a log is; offsets are those of the picture above."""

    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    # By how much max.compaction.lag.ms is exceeded; 0 if it is not.
    delay_ms: int

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def examine(log: Log, now_ms: int) -> CleanableLog:
    """Find out what of a log may be cleaned."""
    segments = log.segments
    first_dirty = _first_dirty_offset(log)
    uncleanable = max(_first_uncleanable_offset(log, first_dirty, now_ms), first_dirty)
    # A segment is cleaned whole or not at all.
    rest = segments.between(uncleanable, segments.active.base_offset)
    first_uncleanable = (rest[0] if rest else segments.active).base_offset
    cleanable = segments.between(min(first_dirty, first_uncleanable), first_uncleanable)
    return CleanableLog(
        log,
        first_dirty,
        first_uncleanable,
        sum(segment.size for segment in segments.between(0, first_dirty)),
        sum(segment.size for segment in cleanable),
        _delay_ms(log, first_dirty, now_ms),
    )


def _first_dirty_offset(log: Log) -> int:
    cleaned = log.cleaned_offset
    if cleaned is None:
        return log.start_offset
    if log.start_offset <= cleaned <= log.end_offset:
        return cleaned
    # Retention may well overtake compaction where both are wanted.
    if cleaned > log.end_offset or not log.config.deletes:
        logger.warning(
            "%s was cleaned up to offset %d, but holds %d to %d: all of it counts as dirty",
            log.name,
            cleaned,
            log.start_offset,
            log.end_offset,
        )
    return log.start_offset


def _first_uncleanable_offset(log: Log, first_dirty: int, now_ms: int) -> int:
    """Neither the active segment is cleaned, nor undecided transactions, nor what is too young."""
    active = log.segments.active.base_offset
    bounds = [active, log.producers.first_unstable_offset]
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments.between(first_dirty, active):
            if segment.largest_timestamp > now_ms - lag_ms:
                bounds.append(segment.base_offset)
                break
    return min(bounds)


def _delay_ms(log: Log, first_dirty: int, now_ms: int) -> int:
    lag_ms = max(log.config.max_compaction_lag_ms, 0)
    if lag_ms == INT64_MAX:
        return 0  # for nearly all logs, which are spared the reading of timestamps
    dirty = log.segments.between(first_dirty, log.segments.active.base_offset)
    timestamps = [segment.first_timestamp for segment in dirty]
    earliest = min((timestamp for timestamp in timestamps if timestamp > 0), default=INT64_MAX)
    return max(now_ms - lag_ms - earliest, 0)


class Candidates:
    """Remembers which logs are not to be cleaned, now or at all."""

    def __init__(self) -> None:
        self.in_progress: set[Log] = set()
        # Logs with damaged or impossible contents: a next try would fail as well.
        self.uncleanable: WeakSet[Log] = WeakSet()
        # When the next try may be, and how long the pause before it was.
        self._postponed: WeakKeyDictionary[Log, tuple[int, int]] = WeakKeyDictionary()

    def may_clean(self, log: Log, now_ms: int) -> bool:
        return (
            log.config.compacts
            and not log.is_offline
            and not log.is_future
            and log not in self.in_progress
            and log not in self.uncleanable
            and self._postponed.get(log, (now_ms, 0))[0] <= now_ms
        )

    def consider(self, log: Log, now_ms: int) -> CleanableLog | None:
        """How dirty the log is, if it may be cleaned at all."""
        return examine(log, now_ms) if self.may_clean(log, now_ms) else None

    def postpone(self, log: Log, now_ms: int) -> None:
        """A cleaning was cut short through no fault of the log's; others come first now."""
        _, last_pause_ms = self._postponed.get(log, (0, 0))
        pause_ms = min(max(last_pause_ms * 2, _FIRST_PAUSE_MS), _LONGEST_PAUSE_MS)
        self._postponed[log] = (now_ms + pause_ms, pause_ms)

    def succeeded(self, log: Log) -> None:
        self._postponed.pop(log, None)
