"""Rebuilds what a log knows of its producers from snapshots and from the log itself.

Owns which snapshot to start from and which segments to read again.
"""

from storage.batch_scan import scan_headers
from storage.files import unless_disk_is_full
from storage.producer_state import ProducerState
from storage.records.layout import MAGIC_2
from storage.segment import Segment
from storage.segments import Segments


def rebuild_producers(
    state: ProducerState,
    segments: Segments,
    start_offset: int,
    end_offset: int,
    now_ms: int,
    *,
    magic: int = MAGIC_2,
    clean: bool = False,
) -> None:
    """Bring the state to what it was at `end_offset`, and write a snapshot of that.

    A log of an older format, or one that was stopped cleanly by a broker that wrote no
    snapshots, has no producers: empty snapshots say so, to spare the next start the search.
    """
    bases = [segment.base_offset for segment in segments][-2:]
    if magic < MAGIC_2 or (clean and state.snapshots.latest is None):
        for offset in (*bases, end_offset):
            state.end_offset = offset
            _take_snapshot(state)
        return
    was_empty = state.is_empty and state.end_offset >= end_offset
    state.reload(start_offset, end_offset, now_ms)
    if end_offset > state.end_offset and not was_empty:
        for segment in segments.between(state.end_offset, end_offset):
            state.end_offset = max(segment.base_offset, state.end_offset, start_offset)
            if segment.base_offset in bases:
                _take_snapshot(state)
            _replay(state, segment, end_offset)
    state.end_offset = end_offset
    _take_snapshot(state)


def _take_snapshot(state: ProducerState) -> None:
    with unless_disk_is_full(f"Snapshot {state.snapshots.path(state.end_offset)}"):
        state.take_snapshot()


def _replay(state: ProducerState, segment: Segment, end_offset: int) -> None:
    """Feed the batches of a segment from the state's end to `end_offset` to the state."""
    found = segment.find(state.end_offset)
    if found is None:
        return
    descriptor = segment.descriptor()
    for position, header in scan_headers(descriptor, found.position, segment.size):
        if header.last_offset >= end_offset:
            return
        size = header.size_in_bytes
        ended = state.replay(header, lambda at=position, n=size: descriptor.read(n, at))  # type: ignore[misc]
        if ended is not None:
            state.complete(ended)
