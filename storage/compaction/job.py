"""What the broker and the worker tell each other about one cleaning.

Owns the messages and their way through a pipe: a length, then the pickled message. Both ends are
the same program, and the pipe is theirs alone.
"""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from storage.segment_files import SegmentSizes
from storage.txn_index import AbortedTransaction

MESSAGE_LENGTH: Final = Struct(">I")


class SourceSegment(NamedTuple):
    """A segment to be cleaned."""

    base_offset: int
    size: int
    offset_index_bytes: int
    time_index_bytes: int
    modified_ms: int


class LastRecord(NamedTuple):
    """What a producer wrote last: a batch that ends with this offset, or only a marker (-1)."""

    last_data_offset: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """All that the worker needs to know."""

    directory: str
    # All segments before `first_uncleanable_offset`.
    sources: tuple[SourceSegment, ...]
    first_dirty_offset: int
    # Where in its segment the batch with that offset begins.
    first_dirty_position: int
    first_uncleanable_offset: int
    # In segments that are not younger than this, tombstones and idle markers may go.
    delete_horizon_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    aborted: tuple[AbortedTransaction, ...]
    last_records: Mapping[int, LastRecord]
    map_bytes: int
    map_load_factor: float
    read_bytes: int
    bytes_per_second: float


class CleanedSegment(NamedTuple):
    """A segment that lies ready as .cleaned, on the disk for sure."""

    base_offset: int
    sizes: SegmentSizes
    largest: tuple[int, int]


class CleanedGroup(NamedTuple):
    """Segments that can take the place of others, which are named by their base offsets."""

    cleaned: tuple[CleanedSegment, ...]
    replaced: tuple[int, ...]


@dataclass(slots=True)
class CleaningSummary:
    """The end of a cleaning; the next one begins at `end_offset`."""

    end_offset: int = 0
    keys: int = 0
    map_bytes_read: int = 0
    map_records_read: int = 0
    map_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    records_without_key: int = 0
    seconds: float = 0.0


class CleaningFailure(NamedTuple):
    """Why a cleaning did not come to its end; `errno` is that of an I/O error, otherwise None."""

    reason: str
    errno: int | None


WorkerMessage = CleanedGroup | CleaningSummary | CleaningFailure


def encode_message(message: CleaningJob | WorkerMessage) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return MESSAGE_LENGTH.pack(len(data)) + data


def decode_job(data: bytes) -> CleaningJob:
    job = pickle.loads(data)
    assert isinstance(job, CleaningJob)
    return job


def decode_worker_message(data: bytes) -> WorkerMessage:
    message = pickle.loads(data)
    assert isinstance(message, WorkerMessage)
    return message
