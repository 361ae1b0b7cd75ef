"""Which segments of a log may go, by age, by size and by log start offset.

Owns the choice; the log removes them. Nothing at or above the high watermark ever goes, so that
the log start offset cannot overtake it.
"""

import logging
from collections.abc import Callable

from storage.log import Log
from storage.segment import Segment

logger = logging.getLogger(__name__)


def enforce_retention(log: Log) -> int:
    """Remove what the log's settings let go; returns the number of segments removed."""
    removed = 0
    if log.config.deletes:
        removed += _remove_expired(log) + _remove_excess(log)
    return removed + _remove_hidden(log)


def _remove_expired(log: Log) -> int:
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return 0
    now = log.environment.clock()
    return _remove(
        log,
        lambda segment, _: now - segment.largest_timestamp > retention_ms,
        f"older than retention.ms = {retention_ms}",
    )


def _remove_excess(log: Log) -> int:
    excess = log.size_in_bytes - log.config.retention_bytes
    if log.config.retention_bytes < 0 or excess < 0:
        return 0

    def is_excess(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return _remove(log, is_excess, f"beyond retention.bytes = {log.config.retention_bytes}")


def _remove_hidden(log: Log) -> int:
    return _remove(
        log,
        lambda _, following: following is not None and following.base_offset <= log.start_offset,
        f"before the log start offset {log.start_offset}",
    )


def _remove(log: Log, may_go: Callable[[Segment, Segment | None], bool], reason: str) -> int:
    """Remove segments from the oldest one on until one must stay."""
    going: list[Segment] = []
    segments = list(log.segments)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        end = log.end_offset if following is None else following.base_offset
        is_empty_last = following is None and segment.size == 0
        if is_empty_last or log.high_watermark < end or not may_go(segment, following):
            break
        going.append(segment)
    if going:
        bases = [segment.base_offset for segment in going]
        logger.info("%s: removing segments %s, %s", log.name, bases, reason)
        log.delete_segments(going)
    return len(going)
