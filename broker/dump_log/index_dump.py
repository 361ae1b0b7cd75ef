"""Shows offset and time indexes (`.index`, `.timeindex`) and holds them against their segment.

Owns the lines about entries and the checks of them. Must not know how segments are shown. The
layouts of entries are those that the log engine declares.
"""

import os
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from broker.dump_log.opened import EntryFile, OpenedFile
from broker.dump_log.report import NO_SUCH_OFFSET, Report
from storage.batch_scan import find_batch
from storage.offset_index import OffsetIndex
from storage.records.batches import Batch, iter_records, parse_header
from storage.records.errors import CorruptRecordError, RecordDataError
from storage.records.layout import BATCH_HEADER_SIZE, NO_TIMESTAMP
from storage.time_index import TimeIndex


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """What is done with an index."""

    shows_entries: bool
    checks_sanity_only: bool
    max_message_size: int


def dump_offset_index(path: str, base_offset: int, options: IndexOptions, report: Report) -> None:
    """Show an offset index and whether each entry names the last offset of the batch there."""
    index = EntryFile(path, OffsetIndex.ENTRY)
    if options.checks_sanity_only:
        _report_sanity(path, _offset_index_fault(index), report)
        return
    segment = _segment_of(path)
    if segment.size == 0 and not any(map(any, index)):
        return  # set aside for a segment that has nothing yet
    for slot, (relative_offset, position) in enumerate(index):
        if slot and relative_offset == 0:
            return  # the rest is set aside for entries that have not come
        offset = base_offset + relative_offset
        try:
            found = _last_offset_at(segment, position, options.max_message_size)
        except RecordDataError as error:
            report.problem(f"{path}: offset {offset}: {error}")
        else:
            if found != offset:
                report.index_mismatch(path, offset, found)
        if options.shows_entries:
            report.line(f"offset: {offset} position: {position}")
    report.trailing_bytes(index.torn_bytes, path)


def dump_time_index(path: str, base_offset: int, options: IndexOptions, report: Report) -> None:
    """Show a time index and whether each entry has the greatest timestamp of its batch."""
    index = EntryFile(path, TimeIndex.ENTRY)
    if options.checks_sanity_only:
        _report_sanity(path, _time_index_fault(index), report)
        return
    segment = _segment_of(path)
    if segment.size == 0 and not any(map(any, index)):
        return
    positions = _Positions(path, segment)
    previous = NO_TIMESTAMP
    for slot, (timestamp, relative_offset) in enumerate(index):
        if slot and relative_offset == 0:
            return
        offset = base_offset + relative_offset
        try:
            batch = positions.find(relative_offset, offset)
            _check_time(path, batch, (timestamp, offset), previous, report)
        except RecordDataError as error:
            report.problem(f"{path}: offset {offset}: {error}")
        if options.shows_entries:
            report.line(f"timestamp: {timestamp} offset: {offset}")
        previous = timestamp
    report.trailing_bytes(index.torn_bytes, path)


def _check_time(
    path: str, batch: Batch | None, entry: tuple[int, int], previous: int, report: Report
) -> None:
    timestamp, offset = entry
    found = NO_SUCH_OFFSET if batch is None else batch.header.last_offset
    if batch is None or found != offset:
        report.offset_not_found(path, offset, found)
        return
    latest = max((record.timestamp for record in iter_records(batch)), default=NO_TIMESTAMP)
    if latest != timestamp:
        report.time_mismatch(path, timestamp, latest)
    if previous >= timestamp:
        report.time_out_of_order(path, timestamp, previous)


class _Positions:
    """Finds batches of a segment by offset, with the help of its offset index if it has one."""

    def __init__(self, path: str, segment: OpenedFile) -> None:
        self._segment = segment
        self._index: EntryFile | None = None
        self._count = 0
        try:
            self._index = EntryFile(_sibling(path, ".index"), OffsetIndex.ENTRY)
        except FileNotFoundError:
            return
        self._count = self._used_entries(self._index)

    @staticmethod
    def _used_entries(index: EntryFile) -> int:
        """How many entries precede those that are only set aside, all zero."""
        return bisect_left(
            range(index.count), True, lo=min(1, index.count), key=lambda slot: index[slot][0] == 0
        )

    def find(self, relative_offset: int, offset: int) -> Batch | None:
        """The first batch that does not end before an offset."""
        start = self._start(relative_offset)
        segment = self._segment
        if not 0 <= start <= segment.size:
            return None
        found = find_batch(segment.descriptor, offset, start, segment.size)
        if found is None or found.position + found.size > segment.size:
            return None
        data = memoryview(segment.read(found.size, found.position))
        return Batch(parse_header(data), data)

    def _start(self, relative_offset: int) -> int:
        index = self._index
        if index is None:
            return 0
        slot = bisect_right(range(self._count), relative_offset, key=lambda slot: index[slot][0])
        return index[slot - 1][1] if slot else 0


def _last_offset_at(segment: OpenedFile, position: int, max_message_size: int) -> int:
    """The last offset of the batch at a position; NO_SUCH_OFFSET where there is no whole one."""
    if not 0 <= position < segment.size:
        return NO_SUCH_OFFSET
    header = parse_header(segment.read(BATCH_HEADER_SIZE, position))
    if position + header.size_in_bytes > segment.size:
        return NO_SUCH_OFFSET
    if header.size_in_bytes > max_message_size:
        raise CorruptRecordError(
            f"The batch at position {position} has {header.size_in_bytes} bytes, more than"
            f" --max-message-size {max_message_size}"
        )
    return header.last_offset


def _segment_of(path: str) -> OpenedFile:
    return OpenedFile(_sibling(path, ".log"))


def _sibling(path: str, suffix: str) -> str:
    """Another file of the same segment."""
    directory, name = os.path.split(path)
    return os.path.join(directory, name.split(".")[0] + suffix)


def _offset_index_fault(index: EntryFile) -> str | None:
    """Why Kafka would build an offset index anew when it starts."""
    if index.count and index[index.count - 1][0] < 0:
        return "its last offset lies before its segment"
    return _torn(index)


def _time_index_fault(index: EntryFile) -> str | None:
    """Why Kafka would build a time index anew when it starts."""
    if index.count:
        first_timestamp = index[0][0]
        last_timestamp, last_relative_offset = index[index.count - 1]
        if last_timestamp < first_timestamp:
            return f"its last timestamp, {last_timestamp}, is below its first, {first_timestamp}"
        if last_relative_offset < 0:
            return "its last offset lies before its segment"
    return _torn(index)


def _torn(index: EntryFile) -> str | None:
    return f"{index.size} bytes are not a number of whole entries" if index.torn_bytes else None


def _report_sanity(path: str, fault: str | None, report: Report) -> None:
    if fault is None:
        report.line(f"{path} passed sanity check.")
    else:
        report.problem(f"{path} failed the sanity check: {fault}")
