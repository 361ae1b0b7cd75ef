"""Offset indexes of finished segments that end too early, though each of their entries is right.

Nothing in such an index tells, and how densely a broker was to make entries is not written down.
But it adds to both indexes of a segment at once; to the time index alone it adds one entry at the
end, and one whenever it was stopped. So entries of the time index that stand alone tell, if they
lie as far apart as offset index entries do in the segments around, and are more than restarts
explain there.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from analytics.audit.indexes import OFFSET_INDEX, TIME_INDEX, Batches, entries

_MOST_ENDINGS: Final = 2  # time index entries of their own that any sound segment may end with


class IndexLengths(NamedTuple):
    """How far the offset index of a segment goes, and what the time index has behind its end."""

    end: int
    narrowest: int | None  # the smallest distance of its entries' batches, from the first on
    lone_inside: int  # time index entries of their own before its end
    covered_to: int
    times_behind: Sequence[int]  # the positions of the batches that they name


def index_lengths(offsets: bytes, times: bytes, batches: Batches) -> IndexLengths:
    """Of a segment of which neither batches nor entries are wrong."""
    sequence, base_offset = batches.sequence, batches.base_offset
    indexed = [entry for _, entry in entries(offsets, OFFSET_INDEX.layout)]
    timed = [entry[1] for _, entry in entries(times, TIME_INDEX.layout)]
    ends = [relative for relative, _ in indexed]
    distances = [after - before for before, after in pairwise([0, *(at for _, at in indexed)])]
    in_interval = Counter(bisect_left(ends, relative) for relative in timed)
    behind = [relative for relative in timed if not ends or relative > ends[-1]]
    named = [sequence.place_of(base_offset + relative) for relative in [*ends[-1:], *behind]]
    positions = [place.position for place in named if place is not None]
    has_end = bool(ends) and named[0] is not None
    return IndexLengths(
        end=len(indexed) * OFFSET_INDEX.layout.size,
        narrowest=min(distances, default=None),
        lone_inside=sum(in_interval[slot] - 1 for slot in range(len(ends)) if in_interval[slot]),
        covered_to=positions[0] if has_end else indexed[-1][1] if indexed else 0,
        times_behind=positions[1:] if has_end else positions,
    )


def short_indexes(segments: Sequence[IndexLengths | None]) -> Iterator[tuple[int, int]]:
    """Which segments of a partition have one, and how many entries are missing at least. The last
    is not asked: a broker adds to its two indexes one after the other."""
    for number, one in enumerate(segments[:-1]):
        if one is None or len(one.times_behind) <= _MOST_ENDINGS:
            continue
        like = [one, *_nearest(segments[number + 1 :]), *_nearest(segments[:number][::-1])]
        narrowest = max((each.narrowest or 0 for each in like), default=0)
        missing = _apart(one, narrowest) if narrowest else 0
        if missing > _MOST_ENDINGS * (1 + sum(each.lone_inside for each in like)):
            yield number, missing


def _nearest(segments: Sequence[IndexLengths | None]) -> Iterator[IndexLengths]:
    """The first that has entries."""
    for one in segments:
        if one is not None and one.narrowest is not None:
            yield one
            return


def _apart(one: IndexLengths, narrowest: int) -> int:
    """How many time index entries stand alone where an offset index entry was due."""
    missing, before = 0, one.covered_to
    for position in one.times_behind:
        missing += position - before >= narrowest
        before = position
    return missing
