"""Copies a partition's log to another log directory, a bit at a time.

Owns the copying between a log and its copy in the making (a `-future` directory). When to copy,
and when to put the copy into place (`LogManager.replace_with_future`), is the broker's decision.
"""

from typing import Final

from storage.append_info import ReadIsolation
from storage.log import Log

COPY_BYTES: Final = 1024 * 1024


def cut_to_length(current: Log, future: Log) -> None:
    """Drop what the copy has beyond the end of the log, which may have lost it in a crash."""
    if future.end_offset > current.end_offset:
        future.truncate_to(current.end_offset)


def copy_some(current: Log, future: Log, max_bytes: int = COPY_BYTES) -> bool:
    """Copy the next batches; True if the copy has all that the log has."""
    if future.end_offset < current.start_offset or future.start_offset > current.end_offset:
        future.truncate_fully_and_start_at(current.start_offset)
    else:
        cut_to_length(current, future)
    read = current.read(future.end_offset, max_bytes, ReadIsolation.LOG_END)
    if len(read.slice):
        future.append_as_follower(read.slice.read())
    future.update_high_watermark(min(current.high_watermark, future.end_offset))
    if current.start_offset > future.start_offset and current.start_offset <= future.end_offset:
        future.update_high_watermark(max(future.high_watermark, current.start_offset))
        future.advance_start_offset(current.start_offset)
    return future.end_offset == current.end_offset
