"""Puts new segments in the place of old ones so that a crash at any step can be repaired.

Owns the order of the renames, and removal with the .deleted suffix. The steps:

    1. new segments lie beside the old ones with the suffix .cleaned
    2. they are renamed to .swap, highest base offset first
    3. old segments are renamed to .deleted, to be removed later
    4. new segments lose their suffix, lowest base offset first

On the next load, .deleted files are removed; as long as a .cleaned file is left, it and the
.swap files at or above its offset are removed (step 2 had not ended); otherwise .swap files are
put into place (steps 3 and 4 are taken up again). See recovery.py.
"""

from collections.abc import Sequence

from storage.environment import Environment
from storage.segment import Segment
from storage.segment_files import DELETED_SUFFIX, SEGMENT_KINDS, SWAP_SUFFIX
from storage.segments import Segments


def replace_segments(
    environment: Environment,
    segments: Segments,
    new: Sequence[Segment],
    old: Sequence[Segment],
    delete_delay_ms: int,
) -> None:
    """Swap new segments (.cleaned, or .swap when recovering) in for old ones."""
    ascending = sorted(new, key=lambda segment: segment.base_offset)
    for segment in reversed(ascending):
        segment.rename(segment.directory, SWAP_SUFFIX)
    replaced = [segment for segment in old if segment in segments]
    discard_segments(environment, replaced, delete_delay_ms)
    for segment in ascending:
        segment.rename(segment.directory, "")
    # Only now, because a thread that flushes the log must not meet a segment that is renamed.
    for segment in ascending:
        segments.add(segment)
    segments.remove(replaced)


def discard_segments(
    environment: Environment, segments: Sequence[Segment], delete_delay_ms: int
) -> None:
    """Rename segments that are no longer part of the log, and have them removed after a while."""
    due_ms = environment.clock() + delete_delay_ms
    for segment in segments:
        segment.deleted = True
        segment.rename(segment.directory, DELETED_SUFFIX)
        segment.release_all()
        for kind in SEGMENT_KINDS:
            environment.deferred_deletes.add(segment.path(kind), due_ms)
