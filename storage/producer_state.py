"""What a log knows of the producers that write to it, and of their transactions.

Owns the map from producer id to its last batches, the open transactions and the first unstable
offset. Must not know segments: whoever replays a log (producer_recovery.py) feeds it batches.
"""

import logging
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from storage.append_info import AppendOrigin
from storage.errors import CorruptSnapshotError
from storage.log_config import INT64_MAX
from storage.producer_entry import (
    NO_TRANSACTION,
    BatchSpan,
    CompletedTransaction,
    ProducerAppend,
    ProducerEntry,
)
from storage.producer_snapshot import Snapshots
from storage.records.batches import Batch, iter_records
from storage.records.control import parse_end_txn_marker
from storage.records.layout import CONTROL_FLAG, NO_PRODUCER_ID, BatchHeader, Buffer

logger = logging.getLogger(__name__)


class CheckedProducers(NamedTuple):
    """What an append will change, once it is written."""

    appends: list[ProducerAppend]
    completed: list[CompletedTransaction]
    # The client sent this before: nothing may be written, this is where the original lies.
    duplicate: BatchSpan | None = None


class ProducerState:
    """Producers of one log, up to `end_offset`."""

    __slots__ = (
        "_expiration_ms",
        "_ongoing",
        "_ongoing_offsets",
        "_snapshot_offset",
        "_unreplicated",
        "end_offset",
        "first_unstable_offset",
        "producers",
        "snapshots",
    )

    def __init__(self, snapshots: Snapshots, expiration_ms: int) -> None:
        self.snapshots = snapshots
        self._expiration_ms = expiration_ms
        self.producers: dict[int, ProducerEntry] = {}
        self.end_offset = 0
        self._snapshot_offset = 0
        # First offset to producer id of transactions without an end, and the offsets in order.
        self._ongoing: dict[int, int] = {}
        self._ongoing_offsets: list[int] = []
        # First offset to last offset of ended transactions whose end is not replicated yet.
        self._unreplicated: dict[int, int] = {}
        # All before it is decided and replicated; INT64_MAX if there is no such transaction.
        self.first_unstable_offset = INT64_MAX

    @property
    def is_empty(self) -> bool:
        return not self.producers and not self._unreplicated

    # Appending

    def in_order(self, headers: Sequence[BatchHeader]) -> ProducerEntry | None:
        """The producer of a single batch that simply follows its last one; None if it does not.

        Such a batch needs no further check, only `ProducerEntry.add_next` once it is written.
        """
        if len(headers) == 1:
            entry = self.producers.get(headers[0].producer_id)
            if entry is not None and entry.is_next(headers[0]):
                return entry
        return None

    def check(
        self, headers: Iterable[BatchHeader], data: Buffer, origin: AppendOrigin
    ) -> CheckedProducers:
        """Check batches, whose offsets are assigned, without changing anything yet."""
        appends: dict[int, ProducerAppend] = {}
        completed: list[CompletedTransaction] = []
        position = 0
        for header in headers:
            start = position
            position += header.size_in_bytes
            producer_id = header.producer_id
            if producer_id == NO_PRODUCER_ID:
                continue
            current = self.producers.get(producer_id)
            if current is not None and origin is AppendOrigin.CLIENT:
                duplicate = current.find_duplicate(header)
                if duplicate is not None:
                    return CheckedProducers([], [], duplicate)
            append = appends.get(producer_id)
            if append is None:
                append = appends[producer_id] = ProducerAppend(producer_id, current, origin)
            if header.attributes & CONTROL_FLAG:
                ended = _end_transaction(append, Batch(header, memoryview(data)[start:position]))
                if ended is not None:
                    completed.append(ended)
            else:
                append.add_batch(header, header.base_offset)
        return CheckedProducers(list(appends.values()), completed)

    def replay(
        self, header: BatchHeader, load: Callable[[], Buffer]
    ) -> CompletedTransaction | None:
        """Take over a batch that is in the log already; the bytes are loaded only if needed.

        Returns the transaction that it ends, which the caller has to `complete`.
        """
        ended = None
        producer_id = header.producer_id
        entry = None if producer_id == NO_PRODUCER_ID else self.producers.get(producer_id)
        if entry is not None and entry.is_next(header):
            entry.add_next(header)
        elif producer_id != NO_PRODUCER_ID:
            append = ProducerAppend(producer_id, entry, AppendOrigin.REPLICATION)
            if header.is_control:
                ended = _end_transaction(append, Batch(header, memoryview(load())))
            else:
                append.add_batch(header, header.base_offset)
            self.apply((append,))
        self.end_offset = header.next_offset
        return ended

    def apply(self, appends: Iterable[ProducerAppend]) -> None:
        """Take over what was checked, now that it is written."""
        for append in appends:
            entry = append.apply()
            self.producers[entry.producer_id] = entry
            for first_offset in append.started_transactions:
                self._begin(first_offset, entry.producer_id)

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Up to where all is decided once this transaction has ended."""
        for first_offset in self._ongoing_offsets:
            if self._ongoing[first_offset] != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        """Mark a transaction as ended; it stays unstable until its end is replicated."""
        first_offset = completed.first_offset
        del self._ongoing[first_offset]
        del self._ongoing_offsets[bisect_left(self._ongoing_offsets, first_offset)]
        self._unreplicated[first_offset] = completed.last_offset
        self._update_first_unstable()

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Forget ended transactions whose end has been replicated."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }
            self._update_first_unstable()

    def _begin(self, first_offset: int, producer_id: int) -> None:
        if first_offset not in self._ongoing:
            insort(self._ongoing_offsets, first_offset)
        self._ongoing[first_offset] = producer_id
        self._update_first_unstable()

    def _update_first_unstable(self) -> None:
        undecided = self._ongoing_offsets[0] if self._ongoing_offsets else INT64_MAX
        self.first_unstable_offset = min(undecided, min(self._unreplicated, default=INT64_MAX))

    # Expiry, truncation and snapshots

    def remove_expired(self, now_ms: int) -> None:
        expired = [
            producer_id
            for producer_id, entry in self.producers.items()
            if entry.is_expired(now_ms, self._expiration_ms)
        ]
        for producer_id in expired:
            del self.producers[producer_id]

    def take_snapshot(self) -> None:
        """Write a snapshot at the current end, unless there is one already."""
        if self.end_offset > self._snapshot_offset:
            self.snapshots.write(self.end_offset, self.producers.values())
            self._snapshot_offset = self.end_offset

    def reload(self, start_offset: int, end_offset: int, now_ms: int) -> None:
        """Go back to the latest snapshot between the start and the end of the log."""
        self.snapshots.keep_within(start_offset + 1, end_offset)
        if end_offset == self.end_offset:
            self.truncate_head(start_offset)
            return
        self._forget_all()
        while (offset := self.snapshots.latest) is not None:
            try:
                entries = self.snapshots.read(offset)
            except CorruptSnapshotError as error:
                logger.warning("Snapshot %s is ignored: %s", self.snapshots.path(offset), error)
                self.snapshots.remove(offset)
                continue
            for entry in entries:
                self._load(entry, now_ms)
            self.end_offset = self._snapshot_offset = offset
            return
        self.end_offset = self._snapshot_offset = start_offset

    def truncate_head(self, start_offset: int) -> None:
        """The log starts later now; what producers wrote before stays known."""
        self.high_watermark_moved(start_offset)
        self.end_offset = max(self.end_offset, start_offset)
        self.snapshots.keep_within(start_offset, INT64_MAX)
        latest = self.snapshots.latest
        self._snapshot_offset = start_offset if latest is None else latest

    def clear(self, end_offset: int) -> None:
        """Forget all producers and remove all snapshots; the log begins anew at an offset."""
        self._forget_all()
        self.snapshots.keep_within(INT64_MAX, INT64_MAX)
        self._snapshot_offset = 0
        self.end_offset = end_offset

    def _load(self, entry: ProducerEntry, now_ms: int) -> None:
        if entry.is_expired(now_ms, self._expiration_ms):
            return
        self.producers[entry.producer_id] = entry
        if entry.txn_first_offset != NO_TRANSACTION:
            self._begin(entry.txn_first_offset, entry.producer_id)

    def _forget_all(self) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self._ongoing_offsets.clear()
        self._unreplicated.clear()
        self.first_unstable_offset = INT64_MAX


def _end_transaction(append: ProducerAppend, batch: Batch) -> CompletedTransaction | None:
    for record in iter_records(batch):
        marker = parse_end_txn_marker(record.key, record.value)
        header = batch.header
        return append.end_transaction(
            marker, header.producer_epoch, header.base_offset, record.timestamp
        )
    return None  # compaction emptied the batch: the whole transaction is gone from the log
