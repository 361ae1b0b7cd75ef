"""Ranges of logs to splits: what one task reads.

Owns how segments are skipped, cut and gathered. A large segment is cut at batches that its index
names, so that it keeps every core busy; small ones share a task, for a task costs Spark more than
a small file, and brokers have many small files.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from analytics.logs import places
from analytics.logs.lookup import (
    boundaries,
    first_offset_of,
    may_hold_from,
    position_after,
    position_before,
    position_from,
)
from analytics.logs.partitions import Segment
from analytics.pieces import NO_FLOOR, NO_LIMIT, Piece
from analytics.source.bounds import LogRange
from analytics.source.options import TaskBytes

# So that no core waits long for the last task of another.
_TASKS_PER_CORE = 2


class Split(InputPartition):
    """The pieces of segments that one task reads, in their order."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        super().__init__(pieces)
        self.pieces = pieces


def plan_splits(
    ranges: Sequence[LogRange],
    task_bytes: TaskBytes,
    min_tasks: int = 1,
    first_timestamp: int = NO_FLOOR,
) -> list[Split]:
    """All that a query reads. Segments whose records are all older are left out."""
    uncut = [
        piece
        for one in ranges
        if one.first_offset < one.end_offset
        for piece in _pieces(one, first_timestamp)
    ]
    total = sum(piece.size for piece in uncut)
    size = max(1, min(bytes_per_task(total, task_bytes, _cores()), -(-total // min_tasks)))
    return gather((part for piece in uncut for part in _cut(piece, size)), size)


def bytes_per_task(total: int, bounds: TaskBytes, cores: int) -> int:
    """The share of each core's tasks, within bounds."""
    return min(max(total // (cores * _TASKS_PER_CORE), bounds.least), bounds.most)


def _cores() -> int:
    """Of the machine that plans, which is all of them for a local master."""
    return os.cpu_count() or 1


def _pieces(one: LogRange, first_timestamp: int) -> Iterator[Piece]:
    segments = one.log.segments
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        next_base = NO_LIMIT if is_last else segments[index + 1].base_offset
        if next_base <= one.first_offset or segment.base_offset >= one.end_offset:
            continue
        if segment.size == 0:
            continue
        if first_timestamp > NO_FLOOR and not may_hold_from(segment, first_timestamp):
            continue
        end_offset = min(one.end_offset, next_base)
        start, end = _positions(segment, one, next_base, first_timestamp)
        if start < end:
            aborted = tuple(
                transaction
                for transaction in one.aborted
                if transaction.last_offset >= segment.base_offset
                and transaction.first_offset < end_offset
            )
            first_offset = max(one.first_offset, segment.base_offset)
            yield Piece(segment, start, end, first_offset, end_offset, aborted)


def _positions(
    segment: Segment, one: LogRange, next_base: int, first_timestamp: int
) -> tuple[int, int]:
    """Between which positions of a segment all that is wanted lies."""
    begins_inside = one.first_offset > segment.base_offset
    ends_inside = one.end_offset < next_base
    if not begins_inside and not ends_inside and first_timestamp == NO_FLOOR:
        return 0, segment.size
    try:
        file = places.open_file(segment.path)
    except FileNotFoundError:
        return 0, segment.size
    start = position_before(segment, file, one.first_offset) if begins_inside else 0
    if first_timestamp > NO_FLOOR:
        start = max(start, position_from(segment, file, first_timestamp))
    end = position_after(segment, file, one.end_offset) if ends_inside else segment.size
    return start, end


def _cut(piece: Piece, size: int) -> Iterator[Piece]:
    """A piece in parts of about a size; those that are a little larger stay whole."""
    count = round(piece.size / size)
    if count <= 1:
        yield piece
        return
    try:
        file = places.open_file(piece.segment.path)
    except FileNotFoundError:
        yield piece
        return
    wanted = [piece.start + piece.size * part // count for part in range(1, count)]
    found = boundaries(piece.segment, file, wanted)
    inside = [batch for batch in found if piece.start < batch.position < piece.end]
    cuts = [(batch.position, first_offset_of(file, batch)) for batch in inside]
    ends = [
        (piece.start, piece.first_offset),
        *(
            (position, max(offset, piece.first_offset))
            for position, offset in cuts
            if offset is not None
        ),
        (piece.end, piece.end_offset),
    ]
    for (start, first_offset), (end, end_offset) in pairwise(ends):
        yield Piece(
            piece.segment,
            start,
            end,
            first_offset,
            min(end_offset, piece.end_offset),
            piece.aborted,
        )


def gather(pieces: Iterable[Piece], bytes_per_task: int) -> list[Split]:
    """Pieces in their order, as many to a split as its size allows."""
    splits: list[Split] = []
    gathered: list[Piece] = []
    gathered_bytes = 0
    for piece in pieces:
        if gathered and gathered_bytes + piece.size > bytes_per_task:
            splits.append(Split(tuple(gathered)))
            gathered, gathered_bytes = [], 0
        gathered.append(piece)
        gathered_bytes += piece.size
    if gathered:
        splits.append(Split(tuple(gathered)))
    return splits
