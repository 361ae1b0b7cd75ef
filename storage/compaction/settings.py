"""The broker-wide settings of compaction, with the defaults of Kafka 2.5's log.cleaner.*.

Owns names, defaults and each worker's share. Must not know topics' settings, which are in
LogConfig, or where settings come from.
"""

import math
from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1024 * 1024
# Beyond it Kafka ignores the rest of the memory, because an array of Java's cannot be longer.
LARGEST_SHARE: Final = 2**31 - 1
_FEWEST_READ_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """log.cleaner.threads, .dedupe.buffer.size and so on."""

    threads: int = 1
    dedupe_buffer_size: int = 128 * MEBIBYTE
    io_buffer_size: int = MEBIBYTE // 2
    io_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = math.inf
    backoff_ms: int = 15_000

    @property
    def map_bytes_each(self) -> int:
        """Memory for keys in each worker."""
        return min(self.dedupe_buffer_size // self.threads, LARGEST_SHARE)

    @property
    def read_bytes_each(self) -> int:
        """How much each worker reads at a time; as much again is for writing."""
        return max(self.io_buffer_size // self.threads // 2, _FEWEST_READ_BYTES)

    @property
    def bytes_per_second_each(self) -> float:
        return self.io_max_bytes_per_second / self.threads
