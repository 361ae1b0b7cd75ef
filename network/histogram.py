"""Histograms with fixed bounds, and samples in Prometheus' terms. Knows nothing of requests."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeAlias

# 10 microseconds to 30 seconds, and 64 bytes to 64 MB
SECONDS_BOUNDS = (
    *(digits * 10.0**exponent for exponent in range(-5, 1) for digits in (1.0, 2.5, 5.0)),
    10.0,
    30.0,
)
BYTES_BOUNDS = tuple(float(64 << shift) for shift in range(0, 21, 2))

Labels: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram as Prometheus wants it: counts of all values up to each bound."""

    cumulative: tuple[tuple[float, int], ...]
    count: int
    total: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure: its family's name and kind, its labels, its value."""

    name: str
    kind: str
    labels: Labels
    value: float | Buckets


class Histogram:
    """Counts of values by fixed bounds; a value equal to a bound lies below it."""

    __slots__ = ("_bounds", "_counts", "count", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.count = 0
        self.total = 0.0

    def observe_all(self, values: list[float]) -> None:
        """Take values in; sorts the list that it is given."""
        values.sort()
        self.count += len(values)
        self.total += sum(values)
        below, end = 0, len(values)
        for index, bound in enumerate(self._bounds):
            reached = bisect_right(values, bound, below)
            self._counts[index] += reached - below
            below = reached
            if below == end:
                return
        self._counts[-1] += end - below

    def observe_zeros(self, count: int) -> None:
        self.count += count
        self._counts[0] += count

    def buckets(self) -> Buckets:
        cumulative: list[tuple[float, int]] = []
        reached = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            reached += count
            cumulative.append((bound, reached))
        return Buckets(tuple(cumulative), self.count, self.total)
