"""Splits a segment whose offsets are too far apart for its index's 32 bits.

Owns the repair of what brokers before Kafka 1.1 could write into compacted logs (KAFKA-6264).
"""

from storage.batch_scan import scan_batches
from storage.environment import Environment
from storage.log_config import INT32_MAX, LogConfig
from storage.records.layout import MAGIC_2, BatchHeader
from storage.replacement import replace_segments
from storage.segment import Segment
from storage.segment_files import CLEANED_SUFFIX
from storage.segments import Segments


def split_segment(
    environment: Environment, segments: Segments, segment: Segment, config: LogConfig
) -> None:
    """Put segments with the same batches, none of them too wide, in the place of one."""
    parts: list[Segment] = []
    next_offset = segment.base_offset
    for scanned in scan_batches(segment.descriptor(), 0, segment.size):
        header, data = scanned.batch
        if not parts or header.last_offset - parts[-1].base_offset > INT32_MAX:
            base_offset = _base_offset(header, next_offset)
            parts.append(
                Segment.create(environment, segment.directory, base_offset, config, CLEANED_SUFFIX)
            )
        parts[-1].append(
            data, header.base_offset, header.last_offset, header.max_timestamp, header.last_offset
        )
        next_offset = header.next_offset
    for part in parts:
        part.become_inactive()
        part.sync()
    segments.add(segment)
    replace_segments(environment, segments, parts, [segment], config.file_delete_delay_ms)


def _base_offset(first: BatchHeader, next_offset: int) -> int:
    """A wrapper of an old format does not tell its first offset, only bounds of it are known."""
    if first.magic >= MAGIC_2:
        return first.base_offset
    return max(next_offset, first.last_offset - INT32_MAX)
