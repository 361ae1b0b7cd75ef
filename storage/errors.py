"""What can go wrong in the log engine itself; what is wrong with record data is in records.errors.

Owns the exceptions of logs, segments, indexes and directories. Knows no wire error codes: the
broker maps these classes, and those of `storage.records.errors`, to codes in its one table.
"""

from pathlib import Path


class StorageError(Exception):
    """Base of what the log engine raises on its own account."""


class LogDirectoryError(StorageError):
    """A log directory failed or is offline: its partitions cannot be served from it."""

    def __init__(self, directory: Path, message: str) -> None:
        super().__init__(f"{message} (log directory {directory})")
        self.directory = directory


class NoLogDirectoryLeftError(StorageError):
    """Every log directory is offline; there is nothing left to serve from."""


class DirectoryLockedError(StorageError):
    """Another process holds the `.lock` of a log directory."""


class MalformedDirectoryError(StorageError):
    """A log directory holds something that no Kafka broker would have put there."""


class CorruptCheckpointError(StorageError):
    """A checkpoint file does not follow its format."""


class CorruptIndexError(StorageError):
    """An index file contradicts itself or its segment; it can be rebuilt from the segment."""


class CorruptSnapshotError(StorageError):
    """A producer snapshot does not follow its format or fails its checksum."""


class OffsetOutOfRangeError(StorageError):
    """The wanted offset lies before the start or past the end of the log."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(
            f"Offset {offset} is out of range: the log holds {start_offset} to {end_offset}"
        )
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset


class RecordBatchTooLargeError(StorageError):
    """The appended records do not fit into one segment (segment.bytes)."""


class OffsetsOutOfOrderError(StorageError):
    """A replicated append holds batches whose offsets do not grow."""


class UnexpectedAppendOffsetError(StorageError):
    """A replicated append starts below the end of the log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class SegmentOverflowError(StorageError):
    """An offset is too far from its segment's base offset for the index's 32 bits."""

    def __init__(self, base_offset: int, offset: int) -> None:
        super().__init__(f"Offset {offset} does not fit into the segment at {base_offset}")
        self.base_offset = base_offset


class OutOfOrderSequenceError(StorageError):
    """An idempotent producer's sequence number leaves a gap."""


class ProducerFencedError(StorageError):
    """A newer epoch of the same producer id has already written to this log."""


class TransactionCoordinatorFencedError(StorageError):
    """A transaction marker comes from a coordinator that has been replaced."""


class InvalidTransactionStateError(StorageError):
    """A producer wrote outside its transaction while one is open."""
