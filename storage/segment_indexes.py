"""The three indexes of a segment, which are made, moved, cut and flushed together.

Owns no search of its own: the segment asks the single indexes.
"""

from storage.environment import Environment
from storage.log_config import LogConfig
from storage.offset_index import OffsetIndex
from storage.segment_files import SegmentSizes, segment_path
from storage.time_index import TimeIndex
from storage.txn_index import TxnIndex


class SegmentIndexes:
    """Offset, time and transaction index of one segment."""

    __slots__ = ("base_offset", "offsets", "times", "transactions")

    def __init__(
        self,
        environment: Environment,
        directory: str,
        base_offset: int,
        suffix: str,
        config: LogConfig,
        sizes: SegmentSizes,
    ) -> None:
        self.base_offset = base_offset
        size = config.segment_index_bytes
        paths = self._paths(directory, suffix)
        self.offsets = OffsetIndex(environment, paths[0], base_offset, size, sizes.offset_index)
        self.times = TimeIndex(environment, paths[1], base_offset, size, sizes.time_index)
        self.transactions = TxnIndex(environment, paths[2], base_offset, sizes.txn_index)

    @property
    def are_full(self) -> bool:
        offsets = self.offsets
        # One slot of the time index is kept for the entry that is added when the segment rolls.
        return offsets.entries >= offsets.max_entries or (
            self.times.entries >= self.times.max_entries - 1
        )

    def create(self) -> None:
        """Make new files, without entries."""
        self.offsets.create()
        self.times.create()
        self.transactions.reset()

    def reset(self) -> None:
        """Drop all entries."""
        self.reset_positions()
        self.transactions.reset()

    def reset_positions(self) -> None:
        """Drop the entries of those indexes that batches' headers tell everything of."""
        self.offsets.reset()
        self.times.reset()

    def append(self, last_offset: int, position: int, largest: tuple[int, int]) -> None:
        """Index the append that ends with an offset, if there is room.

        When indexes are rebuilt there may be more to index than when they were first written.
        """
        if self.are_full:
            return
        entries = self.offsets.entries
        self.offsets.append(last_offset, position)
        try:
            self.times.append(*largest)
        except OSError:
            self.offsets.keep_entries(entries)
            raise

    def append_last_time(self, largest: tuple[int, int]) -> None:
        """The last entry of a segment's time index has its largest timestamp."""
        self.times.append(*largest)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or after an offset."""
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.transactions.truncate_to(offset)

    def trim(self) -> None:
        """Cut the files to their entries."""
        self.offsets.trim()
        self.times.trim()

    def check(self, segment_size: int) -> None:
        """Refuse indexes that contradict themselves or the segment's size."""
        self.offsets.check(segment_size)
        self.times.check()
        self.transactions.check()

    def sync(self) -> None:
        """Bring the files to the disk; may run in a thread."""
        self.sync_positions()
        self.transactions.sync()

    def sync_positions(self) -> None:
        """Bring offset and time index to the disk, if anything was written to them."""
        self.offsets.sync()
        self.times.sync()

    def release(self) -> None:
        self.offsets.release()
        self.times.release()

    def renamed(self, directory: str, suffix: str) -> None:
        """The files have other names now."""
        self.offsets.path, self.times.path, self.transactions.path = self._paths(directory, suffix)

    def _paths(self, directory: str, suffix: str) -> tuple[str, str, str]:
        return (
            segment_path(directory, self.base_offset, "index", suffix),
            segment_path(directory, self.base_offset, "timeindex", suffix),
            segment_path(directory, self.base_offset, "txnindex", suffix),
        )
