"""Offset indexes of finished segments that end too early, though each of their entries is right.

Nothing in such an index tells, and how densely a broker was to make entries is not written down.
But it adds to both indexes of a segment at once; to the time index alone it adds one entry at the
end, and one whenever it was stopped. So entries of the time index that stand alone tell, if they
lie as far apart as offset index entries do in the segments around, and the records behind each
came sooner than any broker starts.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from analytics.audit.indexes import OFFSET_INDEX, TIME_INDEX, Batches, entries
from analytics.audit.sequence import BatchSequence

_MOST_ENDINGS: Final = 2  # time index entries of their own that any sound segment may end with
_SOONEST_START_MS: Final = 1000


class IndexLengths(NamedTuple):
    """How far the offset index of a segment goes, and what the time index has behind its end."""

    end: int
    narrowest: int | None  # the smallest distance of its entries' batches, from the first on
    lone_distances: Sequence[int]  # of batches that the time index alone has, without a stop


def index_lengths(offsets: bytes, times: bytes, batches: Batches) -> IndexLengths:
    """Of a segment of which neither batches nor entries are wrong."""
    indexed = [entry for _, entry in entries(offsets, OFFSET_INDEX.layout)]
    if not batches.sequence.places:
        return IndexLengths(0, None, ())
    timed = [entry[1] for _, entry in entries(times, TIME_INDEX.layout)]
    last = indexed[-1][0] if indexed else -1
    behind = [batches.base_offset + relative for relative in timed if relative > last]
    distances = [after - before for before, after in pairwise([0, *(at for _, at in indexed)])]
    return IndexLengths(
        end=len(indexed) * OFFSET_INDEX.layout.size,
        narrowest=min(distances, default=None),
        lone_distances=list(_lone(batches.sequence, batches.base_offset + last, behind)),
    )


def _lone(sequence: BatchSequence, covered: int, behind: Sequence[int]) -> Iterator[int]:
    before = sequence.place_of(covered) or sequence.places[0]
    for offset in behind:
        place = sequence.place_of(offset)
        if place is None:
            continue
        if place.max_timestamp - before.max_timestamp < _SOONEST_START_MS:
            yield place.position - before.position
        before = place


def short_indexes(segments: Sequence[IndexLengths | None]) -> Iterator[tuple[int, int]]:
    """Which segments of a partition have one, and how many entries are missing at least. The last
    is not asked: a broker adds to its two indexes one after the other."""
    for number, one in enumerate(segments[:-1]):
        if one is None or len(one.lone_distances) <= _MOST_ENDINGS:
            continue
        like = [one, *_nearest(segments[number + 1 :]), *_nearest(segments[:number][::-1])]
        narrowest = max((each.narrowest or 0 for each in like), default=0)
        missing = sum(distance >= narrowest for distance in one.lone_distances)
        if narrowest and missing > _MOST_ENDINGS:
            yield number, missing


def _nearest(segments: Sequence[IndexLengths | None]) -> Iterator[IndexLengths]:
    """The first that has entries."""
    for one in segments:
        if one is not None and one.narrowest is not None:
            yield one
            return
