"""What Spark's filters say about topics, partitions, offsets and timestamps.

Owns how filters become ranges that let whole segments be skipped. They only narrow what is read:
Spark applies every filter to the rows again, so that a filter that is not understood costs nothing
but time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from analytics.pieces import NO_FLOOR, NO_LIMIT

_LOWER: Final = (GreaterThan, GreaterThanOrEqual, EqualTo, EqualNullSafe)
_UPPER: Final = (LessThan, LessThanOrEqual, EqualTo, EqualNullSafe)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Ranges that all wanted rows lie in, both ends included."""

    topics: frozenset[str] | None = None
    partitions: tuple[int, int] = (NO_FLOOR, NO_LIMIT)
    offsets: tuple[int, int] = (NO_FLOOR, NO_LIMIT)
    timestamps: tuple[int, int] = (NO_FLOOR, NO_LIMIT)  # in milliseconds

    def allows(self, topic: str, partition: int) -> bool:
        low, high = self.partitions
        return low <= partition <= high and (self.topics is None or topic in self.topics)


@dataclass(frozen=True, slots=True)
class FilterColumns:
    """The columns of a table that filters are understood on. A row that stands for a range of
    offsets is read if any part of that range is wanted, so both its ends may narrow."""

    first_offset: str
    last_offset: str
    first_timestamp: str | None
    last_timestamp: str


RECORD_COLUMNS: Final = FilterColumns("offset", "offset", "timestamp", "timestamp")
# A batch's first timestamp is that of its first record, not the earliest.
BATCH_COLUMNS: Final = FilterColumns("base_offset", "last_offset", None, "last_timestamp")


def narrow(filters: Iterable[Filter], columns: FilterColumns) -> Narrowing:
    """What all these filters together leave."""
    narrowing = Narrowing()
    for one in filters:
        narrowing = _narrowed(narrowing, one, columns)
    return narrowing


def _narrowed(narrowing: Narrowing, one: Filter, columns: FilterColumns) -> Narrowing:
    attribute = getattr(one, "attribute", None)
    if attribute is None or len(attribute) != 1 or getattr(one, "value", None) is None:
        return narrowing
    name = attribute[0]
    if name == "topic":
        return _narrowed_topics(narrowing, one)
    if name == "partition":
        low, high = _bounds(one, lambda value: value, lambda value: value)
        return replace(narrowing, partitions=_both(narrowing.partitions, low, high))
    if name in (columns.first_offset, columns.last_offset):
        low, high = _bounds(one, lambda value: value, lambda value: value)
        return replace(narrowing, offsets=_both(narrowing.offsets, low, high))
    if name in (columns.first_timestamp, columns.last_timestamp):
        low, high = _bounds(one, _floor_ms, _ceiling_ms)
        if columns.first_timestamp is None:
            high = None
        return replace(narrowing, timestamps=_both(narrowing.timestamps, low, high))
    return narrowing


def _narrowed_topics(narrowing: Narrowing, one: Filter) -> Narrowing:
    if isinstance(one, EqualTo | EqualNullSafe):
        topics = frozenset({one.value})
    elif isinstance(one, In):
        topics = frozenset(one.value)
    else:
        return narrowing
    return replace(
        narrowing, topics=topics if narrowing.topics is None else narrowing.topics & topics
    )


def _bounds(one: Filter, low_of: Any, high_of: Any) -> tuple[int | None, int | None]:
    if isinstance(one, In):
        values = [value for value in one.value if value is not None]
        return (low_of(min(values)), high_of(max(values))) if values else (None, None)
    value = getattr(one, "value", None)
    low = low_of(value) if isinstance(one, _LOWER) else None
    high = high_of(value) if isinstance(one, _UPPER) else None
    return low, high


def _both(known: tuple[int, int], low: int | None, high: int | None) -> tuple[int, int]:
    return (
        known[0] if low is None else max(known[0], low),
        known[1] if high is None else min(known[1], high),
    )


def _microseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _floor_ms(moment: Any) -> int | None:
    return _microseconds(moment) // 1000 if isinstance(moment, datetime) else None


def _ceiling_ms(moment: Any) -> int | None:
    return -(-_microseconds(moment) // 1000) if isinstance(moment, datetime) else None
