"""The segments of one log in the order of their base offsets.

Owns the order and the search. Every change makes new lists, so that a thread that flushes or a
reader that was interrupted keeps a consistent view without a lock.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from storage.segment import Segment


class Segments:
    """Base offset to segment, ordered; `active` is the last one."""

    __slots__ = ("_by_base", "active")

    active: Segment

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._by_base: tuple[list[int], list[Segment]] = ([], [])
        self._store({segment.base_offset: segment for segment in segments})

    def __len__(self) -> int:
        return len(self._by_base[0])

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._by_base[1])

    def __contains__(self, segment: Segment) -> bool:
        return self.floor(segment.base_offset) is segment

    @property
    def first(self) -> Segment:
        return self._by_base[1][0]

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self._by_base[1])

    def floor(self, offset: int) -> Segment | None:
        """The last segment whose base offset is at or below an offset."""
        bases, segments = self._by_base
        slot = bisect_right(bases, offset) - 1
        return segments[slot] if slot >= 0 else None

    def higher(self, offset: int) -> Segment | None:
        """The first segment whose base offset is above an offset."""
        bases, segments = self._by_base
        slot = bisect_right(bases, offset)
        return segments[slot] if slot < len(segments) else None

    def lower(self, offset: int) -> Segment | None:
        """The last segment whose base offset is below an offset."""
        bases, segments = self._by_base
        slot = bisect_left(bases, offset) - 1
        return segments[slot] if slot >= 0 else None

    def between(self, start: int, end: int) -> list[Segment]:
        """The segments that may hold offsets from `start` to `end` - 1."""
        if start >= end:
            return []
        bases, segments = self._by_base
        return segments[max(bisect_right(bases, start) - 1, 0) : bisect_left(bases, end)]

    def add(self, segment: Segment) -> None:
        """Add a segment; one with the same base offset is replaced."""
        by_base = dict(zip(*self._by_base, strict=True))
        by_base[segment.base_offset] = segment
        self._store(by_base)

    def remove(self, removed: Iterable[Segment]) -> None:
        gone = {id(segment) for segment in removed}
        self._store({s.base_offset: s for s in self._by_base[1] if id(s) not in gone})

    def _store(self, by_base: dict[int, Segment]) -> None:
        bases = sorted(by_base)
        self._by_base = (bases, [by_base[base] for base in bases])
        if bases:
            self.active = by_base[bases[-1]]
