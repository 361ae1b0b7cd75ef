"""What a log remembers of one producer id, and the check of what it appends next.

Owns the rules for epochs and sequence numbers and the start and end of transactions, for one
producer in one log. Must not know other producers, files or snapshots.
"""

import logging
from typing import Final, NamedTuple

from storage.append_info import AppendOrigin
from storage.errors import (
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionCoordinatorFencedError,
)
from storage.log_config import INT32_MAX
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import (
    CONTROL_FLAG,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)

# A producer may have this many requests in flight, so this many may come again.
BATCHES_TO_REMEMBER: Final = 5
NO_TRANSACTION: Final = -1
NO_COORDINATOR_EPOCH: Final = -1

logger = logging.getLogger(__name__)


class BatchSpan(NamedTuple):
    """Where an appended batch lies in sequence numbers and offsets."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        if self.last_sequence < self.offset_delta:
            return INT32_MAX - (self.offset_delta - self.last_sequence) + 1
        return self.last_sequence - self.offset_delta

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerEntry:
    """The last batches of a producer id, its epoch and its open transaction."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        txn_first_offset: int = NO_TRANSACTION,
        batches: list[BatchSpan] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        self.batches = batches if batches is not None else []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """An open transaction keeps its producer however long it takes."""
        return (
            self.txn_first_offset == NO_TRANSACTION
            and now_ms - self.last_timestamp >= expiration_ms
        )

    def find_duplicate(self, header: BatchHeader) -> BatchSpan | None:
        """The remembered batch with the same sequence numbers, if there is one."""
        if header.producer_epoch == self.epoch:
            last_sequence = header.last_sequence
            for span in self.batches:
                if (
                    span.last_sequence == last_sequence
                    and span.first_sequence == header.base_sequence
                ):
                    return span
        return None

    def is_next(self, header: BatchHeader) -> bool:
        """Whether a batch simply follows the last one: nothing but its sequence is new.

        By far most batches do. All else, from duplicates to the start of a transaction, is for
        `ProducerAppend` to judge.
        """
        batches = self.batches
        return (
            bool(batches)
            and header.producer_epoch == self.epoch
            and header.base_sequence == batches[-1].last_sequence + 1 > 0
            and header.base_sequence + header.last_offset_delta <= INT32_MAX
            and header.attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG)
            == (0 if self.txn_first_offset == NO_TRANSACTION else TRANSACTIONAL_FLAG)
        )

    def add_next(self, header: BatchHeader) -> None:
        """Note a batch, now in the log, for which `is_next` held."""
        base_offset, delta = header.base_offset, header.last_offset_delta
        timestamp = header.max_timestamp
        batches = self.batches
        batches.append(
            BatchSpan(header.base_sequence + delta, base_offset + delta, delta, timestamp)
        )
        if len(batches) > BATCHES_TO_REMEMBER:
            del batches[0]
        self.last_timestamp = timestamp


class ProducerAppend:
    """Checks a producer's batches against its entry, and holds what to change once written."""

    __slots__ = (
        "_current",
        "_origin",
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "started_transactions",
        "txn_first_offset",
    )

    def __init__(
        self, producer_id: int, current: ProducerEntry | None, origin: AppendOrigin
    ) -> None:
        entry = current or ProducerEntry(producer_id)
        self._current = entry
        self._origin = origin
        self.producer_id = producer_id
        self.epoch = entry.epoch
        self.coordinator_epoch = entry.coordinator_epoch
        self.last_timestamp = entry.last_timestamp
        self.txn_first_offset = entry.txn_first_offset
        self.batches: list[BatchSpan] = []
        self.started_transactions: list[int] = []

    def add_batch(self, header: BatchHeader, first_offset: int) -> None:
        """Check and note a batch of records that will lie at an offset."""
        epoch = header.producer_epoch
        self._check_epoch(epoch, first_offset)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(epoch, header.base_sequence, first_offset)
        self._move_to_epoch(epoch)
        delta = header.last_offset_delta
        timestamp = header.max_timestamp
        self.batches.append(BatchSpan(header.last_sequence, first_offset + delta, delta, timestamp))
        self.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL_FLAG:
            if self.txn_first_offset == NO_TRANSACTION:
                self.txn_first_offset = first_offset
                self.started_transactions.append(first_offset)
        elif self.txn_first_offset != NO_TRANSACTION:
            raise InvalidTransactionStateError(
                f"Producer {self.producer_id} wrote outside its open transaction"
            )

    def end_transaction(
        self, marker: EndTxnMarker, epoch: int, offset: int, timestamp: int
    ) -> CompletedTransaction:
        """Check and note a marker; one without records before it is a transaction of its own."""
        self._check_epoch(epoch, offset)
        self._check_coordinator_epoch(marker.coordinator_epoch)
        first_offset = self.txn_first_offset
        if first_offset == NO_TRANSACTION:
            first_offset = offset
            self.started_transactions.append(offset)
        self._move_to_epoch(epoch)
        self.txn_first_offset = NO_TRANSACTION
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp = timestamp
        return CompletedTransaction(
            self.producer_id, first_offset, offset, marker.control_type is ControlType.ABORT
        )

    def apply(self) -> ProducerEntry:
        """The producer's entry with all changes made."""
        entry = self._current
        if entry.epoch != self.epoch:
            entry.epoch = self.epoch
            entry.batches.clear()
        entry.batches += self.batches
        del entry.batches[:-BATCHES_TO_REMEMBER]
        entry.coordinator_epoch = self.coordinator_epoch
        entry.last_timestamp = self.last_timestamp
        entry.txn_first_offset = self.txn_first_offset
        return entry

    def _move_to_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def _check_epoch(self, epoch: int, offset: int) -> None:
        if epoch >= self.epoch:
            return
        message = (
            f"Producer {self.producer_id} writes at offset {offset} in epoch {epoch}, older than"
            f" the last one seen, {self.epoch}"
        )
        if self._origin is not AppendOrigin.REPLICATION:
            raise ProducerFencedError(message)
        logger.warning("%s", message)

    def _check_sequence(self, epoch: int, first_sequence: int, offset: int) -> None:
        current = self._current
        if epoch != self.epoch:
            if first_sequence != 0 and self.epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequenceError(
                    f"Producer {self.producer_id} begins epoch {epoch} at offset {offset} with"
                    f" sequence number {first_sequence} instead of 0"
                )
            return
        if self.batches:
            last_sequence = self.batches[-1].last_sequence
        else:
            last_sequence = current.last_sequence if epoch == current.epoch else NO_SEQUENCE
        # A producer of whom nothing is known (all its records are gone) may go on anywhere.
        if current.epoch == NO_PRODUCER_EPOCH or first_sequence == last_sequence + 1:
            return
        if first_sequence == 0 and last_sequence == INT32_MAX:
            return
        raise OutOfOrderSequenceError(
            f"Producer {self.producer_id} writes sequence number {first_sequence} at offset"
            f" {offset} after {last_sequence}"
        )

    def _check_coordinator_epoch(self, coordinator_epoch: int) -> None:
        if self.coordinator_epoch <= coordinator_epoch:
            return
        message = (
            f"The marker for producer {self.producer_id} has coordinator epoch"
            f" {coordinator_epoch}, older than the last one seen, {self.coordinator_epoch}"
        )
        if self._origin is not AppendOrigin.REPLICATION:
            raise TransactionCoordinatorFencedError(message)
        logger.info("%s", message)
