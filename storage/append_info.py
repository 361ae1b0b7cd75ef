"""What an append says about itself: who asked, and what became of it.

Owns plain values only.
"""

from enum import Enum
from typing import NamedTuple

from storage.records.layout import NO_TIMESTAMP


class AppendOrigin(Enum):
    """Who asked for an append, which decides how much of it is checked."""

    REPLICATION = "replication"  # checked by the leader already
    COORDINATOR = "coordinator"  # the broker's own records, transaction markers among them
    CLIENT = "client"


class AppendInfo(NamedTuple):
    """What became of an append."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    # When the broker stamped the records (LogAppendTime); -1 where producers set the time.
    log_append_time: int
    log_start_offset: int
    size_in_bytes: int
    # An idempotent producer sent this before: nothing was written, the offsets are the original's.
    is_duplicate: bool = False

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1


def empty_append(log_start_offset: int) -> AppendInfo:
    """The answer to an append without a single batch."""
    return AppendInfo(-1, -2, NO_TIMESTAMP, NO_TIMESTAMP, log_start_offset, 0)


class ReadIsolation(Enum):
    """How far a reader may see."""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "high watermark"  # read_uncommitted
    COMMITTED = "last stable offset"  # read_committed
