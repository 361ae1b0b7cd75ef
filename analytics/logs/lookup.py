"""Where in a log an offset or a timestamp lies, found as a broker finds it: by indexes, then by
headers.

Owns the searches, over any place. Indexes are hints: a position that one names is used only if a
batch begins there that fits, and a timestamp only if the batch that it is said of has it. Must not
know Spark.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from analytics.logs import places
from analytics.logs.index_files import IndexEntry, offset_index, time_index
from analytics.logs.partitions import PartitionLog, Segment
from analytics.logs.places import PlacedFile
from storage.records.batches import Batch, is_intact, iter_records, parse_header
from storage.records.errors import CorruptRecordError, RecordDataError
from storage.records.layout import BATCH_HEADER_SIZE, BatchHeader
from storage.records.legacy import UNKNOWN_RECORD_COUNT, read_messages
from storage.records.record import Record


class BatchAt(NamedTuple):
    """A batch, and where it begins in its file."""

    position: int
    header: BatchHeader


def header_at(file: PlacedFile, position: int, end: int) -> BatchHeader | None:
    """The header of the whole batch at a position; None if there is none before `end`."""
    try:
        header = parse_header(file.read(min(BATCH_HEADER_SIZE, end - position), position))
    except RecordDataError:
        return None
    return header if position + header.size_in_bytes <= end else None


def walk(file: PlacedFile, position: int, end: int) -> Iterator[BatchAt]:
    """The batches from a position on, up to the first that is not whole."""
    while position < end and (header := header_at(file, position, end)) is not None:
        yield BatchAt(position, header)
        position += header.size_in_bytes


def batch_at(file: PlacedFile, found: BatchAt) -> Batch:
    """The bytes of a batch."""
    return Batch(found.header, memoryview(file.read(found.header.size_in_bytes, found.position)))


def first_offset_of(file: PlacedFile, found: BatchAt) -> int | None:
    """The first offset in a batch, which the header of a compressed old message does not tell;
    None if that cannot be opened."""
    if found.header.record_count == UNKNOWN_RECORD_COUNT:
        try:
            return read_messages(batch_at(file, found).data, found.header)[0].record.offset
        except RecordDataError:
            return None
    return found.header.base_offset


def boundaries(segment: Segment, file: PlacedFile, wanted: Sequence[int]) -> list[BatchAt]:
    """Batches that begin at or a little after the wanted positions, by the `.index`.

    Where the index is missing or wrong there are fewer, or none.
    """
    index = offset_index(segment.index_path("index"))
    found: dict[int, BatchAt] = {}
    for position in wanted:
        entry = index.first_where(_is_from(position))
        if entry is None or entry.target in found:
            continue
        batch = _checked_batch(file, segment, entry.target)
        if batch is not None:
            found[entry.target] = batch
    return [found[position] for position in sorted(found)]


def _is_from(position: int) -> Callable[[IndexEntry], bool]:
    return lambda entry: entry.target >= position


def _checked_batch(file: PlacedFile, segment: Segment, position: int) -> BatchAt | None:
    """The batch at a position, if it is one beyond doubt: its checksum is right."""
    if not 0 < position < segment.size:
        return None
    header = header_at(file, position, segment.size)
    if header is None or header.base_offset < segment.base_offset:
        return None
    found = BatchAt(position, header)
    return found if is_intact(batch_at(file, found)) else None


def position_before(segment: Segment, file: PlacedFile, offset: int) -> int:
    """A position from which on a walk meets all batches with this offset or later ones."""
    index = offset_index(segment.index_path("index"))
    relative = offset - segment.base_offset
    entry = index.last_where(lambda entry: entry.key <= relative)
    if entry is None or entry.target == 0:
        return 0
    found = _checked_batch(file, segment, entry.target)
    if found is None or found.header.base_offset > offset:
        return 0
    return entry.target


def position_after(segment: Segment, file: PlacedFile, offset: int) -> int:
    """A position before which all batches with offsets below this one lie."""
    index = offset_index(segment.index_path("index"))
    relative = offset - segment.base_offset
    first = index.first_slot_where(lambda entry: entry.key >= relative)
    # The append that ends with this offset may begin before it; then the one after it is good.
    for slot in range(first, min(first + 2, index.count)):
        found = _checked_batch(file, segment, index.entry(slot).target)
        base = None if found is None else first_offset_of(file, found)
        if found is not None and base is not None and base >= offset:
            return found.position
    return segment.size


def next_offset_of(segment: Segment, file: PlacedFile | None = None) -> int:
    """The offset after the last whole batch of a segment."""
    try:
        file = file or places.open_file(segment.path)
    except FileNotFoundError:
        return segment.base_offset
    end = max(file.size, segment.size)
    last = offset_index(segment.index_path("index")).last
    start = 0
    if last is not None and _checked_batch(file, segment, last.target) is not None:
        start = last.target
    next_offset = segment.base_offset
    for batch in walk(file, start, end):
        next_offset = batch.header.next_offset
    return next_offset


def end_offset(log: PartitionLog) -> int:
    """The offset that the next record of a log will get, as far as its files tell."""
    return next_offset_of(log.segments[-1])


def offset_for_timestamp(log: PartitionLog, timestamp: int) -> int | None:
    """The first record, in the order of offsets, whose timestamp is not below the given one."""
    for segment in log.segments:
        if not may_hold_from(segment, timestamp):
            continue
        found = _first_record_from(segment, timestamp, log.start_offset)
        if found is not None:
            return found
    return None


def may_hold_from(segment: Segment, timestamp: int) -> bool:
    """False if all records of a segment have earlier timestamps, as its `.timeindex` says.

    The index of a segment that is no longer written ends with its latest timestamp.
    """
    if segment.is_last:
        return True
    last = time_index(segment.index_path("timeindex")).last
    if last is None or last.key >= timestamp:
        return True
    try:
        return not _is_right_time(segment, places.open_file(segment.path), last)
    except FileNotFoundError:
        return True


def _is_right_time(segment: Segment, file: PlacedFile, entry: IndexEntry) -> bool:
    """Whether an entry of a time index agrees with the batch that it names."""
    offset = segment.base_offset + entry.target
    for found in walk(file, position_before(segment, file, offset), segment.size):
        if found.header.last_offset >= offset:
            return found.header.max_timestamp == entry.key
    return False


def _first_record_from(segment: Segment, timestamp: int, least_offset: int) -> int | None:
    """Of a batch that cannot be opened the header alone tells: whoever reads from there meets it,
    and reports it."""
    try:
        file = places.open_file(segment.path)
    except FileNotFoundError:
        return None
    for found in walk(file, position_from(segment, file, timestamp), segment.size):
        if found.header.max_timestamp < timestamp or found.header.last_offset < least_offset:
            continue
        try:
            records = _readable_records(batch_at(file, found))
        except RecordDataError:
            return max(found.header.base_offset, least_offset)
        for record in records:
            if record.timestamp >= timestamp and record.offset >= least_offset:
                return record.offset
    return None


def _readable_records(batch: Batch) -> list[Record]:
    if not is_intact(batch):
        raise CorruptRecordError("The checksum does not match")
    return list(iter_records(batch))


def position_from(segment: Segment, file: PlacedFile, timestamp: int) -> int:
    """A position from which on a walk meets all records with this timestamp or a later one."""
    index = time_index(segment.index_path("timeindex"))
    entry = index.last_where(lambda entry: entry.key < timestamp)
    if entry is None or not _is_right_time(segment, file, entry):
        return 0
    return position_before(segment, file, segment.base_offset + entry.target)
