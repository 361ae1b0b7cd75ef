"""Follows the transactions of a log while it is cleaned.

Owns which records were aborted and which transaction markers nothing refers to any more. Must
not know time: how long markers stay although nothing refers to them is the cleaning's concern.
"""

from collections.abc import Iterable

from storage.records.batches import Batch, iter_records
from storage.records.control import ControlType, parse_control_type
from storage.records.layout import BatchHeader
from storage.txn_index import AbortedTransaction


class Transactions:
    """Fed with the batches of a log in the order of their offsets."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` must hold all whose marker is among the batches to come, and no others
        that began before these."""
        # The one that begins first is the last of the list.
        self._to_come = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        # By producer id: the aborted transaction, and whether there is anything left of it.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        # Producers with a transaction of which a batch was seen, and that was not aborted.
        self._committed: set[int] = set()
        self._left: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the records of this transactional batch were aborted."""
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if producer_id in self._aborted:
            self._aborted[producer_id] = (self._aborted[producer_id][0], True)
            return True
        self._committed.add(producer_id)
        return False

    def is_marker_idle(self, batch: Batch) -> bool:
        """Whether no batch of the transaction that this control batch ends is left."""
        header = batch.header
        self._begin_up_to(header.last_offset)
        record = next(iter_records(batch), None)
        if record is None:
            return True  # an earlier cleaning has emptied it
        control_type = parse_control_type(record.key)
        if control_type is ControlType.ABORT:
            aborted, is_seen = self._aborted.pop(header.producer_id, (None, False))
            if aborted is not None and is_seen:
                self._left.append(aborted)
                return False
            return True
        if control_type is ControlType.COMMIT:
            is_seen = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not is_seen
        return False

    def take_left(self) -> list[AbortedTransaction]:
        """The aborted transactions since the last call whose marker must stay indexed."""
        left, self._left = self._left, []
        return left

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            aborted = self._to_come.pop()
            self._aborted.setdefault(aborted.producer_id, (aborted, False))
