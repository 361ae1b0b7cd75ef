"""What readers of committed data must not see: aborted batches, and all from the first
transaction on that is still open.

Owns how both are found in files alone, as a broker finds them when it starts: aborted transactions
in the `.txnindex` files, open ones in the latest producer snapshot and in the headers after it.
The headers also tell of transactions that were aborted since, whose index entries may not have
been written yet. Must not know Spark.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from analytics.decoding.header_kernel import Header
from analytics.decoding.windows import HeaderWindows
from analytics.errors import AnalysisError
from analytics.logs import places
from analytics.logs.lookup import next_offset_of, position_before
from analytics.logs.partitions import PartitionLog, Segment
from storage.errors import CorruptIndexError, CorruptSnapshotError
from storage.producer_entry import NO_TRANSACTION
from storage.producer_snapshot import decode_snapshot
from storage.records.control import ControlType
from storage.records.layout import CONTROL_FLAG, TRANSACTIONAL_FLAG
from storage.segment_files import SNAPSHOT_KIND
from storage.txn_index import AbortedTransaction, decode_entries

NO_STABLE_LIMIT: Final = (1 << 63) - 1


class AbortedBatches:
    """Finds the batches of aborted transactions by their headers."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        by_producer: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for transaction in aborted:
            span = transaction.first_offset, transaction.last_offset
            by_producer[transaction.producer_id].append(span)
        self._spans = {producer: sorted(spans) for producer, spans in by_producer.items()}

    def __bool__(self) -> bool:
        return bool(self._spans)

    def among(self, headers: Any) -> Any:
        """Which of these batches belong to an aborted transaction."""
        found = np.zeros(len(headers), bool)
        is_transactional = headers[:, Header.ATTRIBUTES] & TRANSACTIONAL_FLAG != 0
        for row in np.flatnonzero(is_transactional):
            header = headers[row]
            spans = self._spans.get(int(header[Header.PRODUCER_ID]))
            if spans:
                offset = int(header[Header.BASE_OFFSET])
                index = bisect_right(spans, (offset, NO_STABLE_LIMIT)) - 1
                found[row] = index >= 0 and offset <= spans[index][1]
        return found


@dataclass(frozen=True, slots=True)
class TransactionView:
    """The transactions of one log at one moment."""

    aborted: tuple[AbortedTransaction, ...]
    last_stable_offset: int  # NO_STABLE_LIMIT if no transaction is open
    known_until: int  # whatever was appended from here on is not known

    @property
    def readable_end(self) -> int:
        """The offset up to which everything is known to be decided."""
        return min(self.last_stable_offset, self.known_until)

    def within(self, first_offset: int, end_offset: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that have records in a range of offsets."""
        return tuple(
            transaction
            for transaction in self.aborted
            if transaction.last_offset >= first_offset and transaction.first_offset < end_offset
        )


def transactions_of(log: PartitionLog) -> TransactionView:
    """What the files of a log tell of its transactions."""
    known_until, still_open = _latest_snapshot(log)
    recent, known_until = _end_transactions(log, known_until, still_open)
    aborted = {
        (entry.producer_id, entry.last_offset): entry
        for segment in log.segments
        for entry in _indexed(segment)
    }
    for entry in recent:
        aborted.setdefault((entry.producer_id, entry.last_offset), entry)
    ordered = sorted(aborted.values(), key=lambda entry: entry.last_offset)
    last_stable_offset = min(still_open.values(), default=NO_STABLE_LIMIT)
    return TransactionView(tuple(ordered), last_stable_offset, known_until)


def _latest_snapshot(log: PartitionLog) -> tuple[int, dict[int, int]]:
    """Up to which offset a snapshot knows the producers, and the first offsets of the
    transactions that are open there. One behind the segments that were found knows of
    transactions that were aborted in others, whose indexes are not looked at."""
    end = next_offset_of(log.segments[-1])
    for offset in reversed(log.snapshot_offsets):
        if offset > end:
            continue
        try:
            entries = decode_snapshot(
                places.read_whole(places.join(log.directory, f"{offset:020d}.{SNAPSHOT_KIND}"))
            )
        except (OSError, CorruptSnapshotError):
            continue
        return offset, {
            entry.producer_id: entry.txn_first_offset
            for entry in entries
            if entry.txn_first_offset != NO_TRANSACTION
        }
    return log.segments[0].base_offset, {}


def _end_transactions(
    log: PartitionLog, known_until: int, still_open: dict[int, int]
) -> tuple[list[AbortedTransaction], int]:
    """Follow transactions by the headers from an offset on: `still_open` becomes what is open at
    the end, and the result is what was aborted on the way, and the offset of that end."""
    aborted: list[AbortedTransaction] = []
    end = known_until
    for index, segment in enumerate(log.segments):
        if index + 1 < len(log.segments) and log.segments[index + 1].base_offset <= known_until:
            continue
        try:
            file = places.open_file(segment.path)
        except FileNotFoundError:
            continue
        start = position_before(segment, file, known_until)
        for window in HeaderWindows(file, start, segment.size):
            headers = window.headers
            concerns = headers[:, Header.ATTRIBUTES] & TRANSACTIONAL_FLAG != 0
            concerns &= headers[:, Header.BASE_OFFSET] >= known_until
            for header in headers[concerns]:
                _follow(header, still_open, aborted)
            end = max(end, int(headers[-1, Header.LAST_OFFSET]) + 1)
    return aborted, end


def _follow(header: Any, still_open: dict[int, int], aborted: list[AbortedTransaction]) -> None:
    producer_id = int(header[Header.PRODUCER_ID])
    offset = int(header[Header.BASE_OFFSET])
    if not header[Header.ATTRIBUTES] & CONTROL_FLAG:
        still_open.setdefault(producer_id, offset)
        return
    first_offset = still_open.pop(producer_id, None)
    if first_offset is not None and header[Header.CONTROL_TYPE] == ControlType.ABORT:
        stable = min(still_open.values(), default=offset)
        aborted.append(AbortedTransaction(producer_id, first_offset, offset, stable))


def _indexed(segment: Segment) -> list[AbortedTransaction]:
    """What was aborted, as the index of a segment has it. One that is there and cannot be read is
    an error: without it, aborted records would look like any other."""
    path = segment.index_path("txnindex")
    try:
        return decode_entries(places.read_whole(path), path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise AnalysisError(f"{path}: cannot be read: {error.strerror or error}") from error
    except CorruptIndexError as error:
        raise AnalysisError(str(error)) from error
