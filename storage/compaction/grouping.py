"""Which segments are cleaned into one, so that segments do not shrink with every cleaning.

Owns the grouping, Kafka's own.
"""

from collections.abc import Sequence

from storage.compaction.job import SourceSegment
from storage.log_config import INT32_MAX


def group_sources(
    sources: Sequence[SourceSegment], segment_bytes: int, index_bytes: int, end_offset: int
) -> list[list[SourceSegment]]:
    """Neighbours that fit together into one segment; `end_offset` is where the last one ends."""
    groups: list[list[SourceSegment]] = []
    for number, source in enumerate(sources):
        is_last = number == len(sources) - 1
        end = end_offset if is_last else sources[number + 1].base_offset
        if groups and _fits(groups[-1], source, segment_bytes, index_bytes, end):
            groups[-1].append(source)
        else:
            groups.append([source])
    return groups


def _fits(
    group: list[SourceSegment],
    source: SourceSegment,
    segment_bytes: int,
    index_bytes: int,
    end_offset: int,
) -> bool:
    together = [*group, source]
    return (
        sum(one.size for one in together) <= segment_bytes
        and sum(one.offset_index_bytes for one in together) <= index_bytes
        and sum(one.time_index_bytes for one in together) <= index_bytes
        and end_offset - 1 - group[0].base_offset <= INT32_MAX
    )
