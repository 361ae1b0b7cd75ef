"""The settings of one log, with the defaults of Kafka 2.5's topic-level settings.

Owns names (Kafka's, with dots as underscores), defaults and what can be derived from them. Must
not know where settings come from or how they are parsed and validated.
"""

from dataclasses import dataclass, field
from typing import Final

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Topic-level settings as one log sees them."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1_048_588
    message_downconversion_enable: bool = True
    message_format_version: str = "2.5-IV0"
    message_timestamp_difference_max_ms: int = INT64_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 1024**3
    segment_index_bytes: int = 10 * 1024**2
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * DAY_MS
    unclean_leader_election_enable: bool = False
    # A compacted log must roll early enough for its records to become compactable.
    roll_ms: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        roll_ms = self.segment_ms
        if self.compacts and self.max_compaction_lag_ms > 0:
            roll_ms = min(self.max_compaction_lag_ms, roll_ms)
        object.__setattr__(self, "roll_ms", roll_ms)

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def record_magic(self) -> int:
        """The record format that this message format version writes."""
        return _magic_of_version(self.message_format_version)


def _magic_of_version(version: str) -> int:
    release = version.partition("-")[0]
    numbers = [int(part) for part in release.split(".")]
    # Releases before 1.0 are written 0.major.minor; magic 1 came with 0.10.0, magic 2 with 0.11.0.
    if numbers[0] >= 1 or numbers[1] >= 11:
        return 2
    return 1 if numbers[1] == 10 else 0
