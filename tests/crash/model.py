"""What must be in the logs, kept in plain lists and checked against logs that were reopened.

Owns the list of batches of each partition and what follows from it for producers and
transactions, reckoned from scratch and without the engine's own bookkeeping. Must not know how
the writer came to its end.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from storage.append_info import AppendOrigin
from storage.records.batches import Batch, iter_batches, iter_records
from storage.records.control import ControlType, parse_control_type
from storage.records.layout import (
    BASE_OFFSET_POSITION,
    LEADER_EPOCH_FIELD,
    LEADER_EPOCH_POSITION,
    MAGIC_2,
    OFFSET_FIELD,
    BatchHeader,
)
from tests.crash.journal import Append, JournalContent
from tests.crash.workload import PARTITIONS, Producer

_REMEMBERED_BATCHES: Final = 5


class StoredBatch(NamedTuple):
    """A batch in a log: its offsets, and its bytes but for what an append changes."""

    first_offset: int
    last_offset: int
    content: bytes


class Sent(NamedTuple):
    """A batch of an idempotent producer and where it went."""

    header: BatchHeader
    content: bytes
    first_offset: int


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class ProducerFacts:
    """What a log's batches tell of one producer id."""

    epoch: int = -1
    sent: list[Sent] = field(default_factory=list)
    is_transactional: bool = False
    transaction_start: int | None = None


@dataclass(slots=True)
class PartitionFacts:
    """What a log's batches tell of its producers."""

    producers: dict[int, ProducerFacts] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)

    def first_unstable_offset(self) -> int | None:
        starts = [producer.transaction_start for producer in self.producers.values()]
        return min((start for start in starts if start is not None), default=None)


@dataclass(slots=True)
class Model:
    """The batches of each partition, by its number in PARTITIONS."""

    batches: list[list[StoredBatch]] = field(default_factory=lambda: [[] for _ in PARTITIONS])

    def acknowledge(self, journal: JournalContent) -> None:
        """Take over what a writer was told to be in the logs."""
        for append, first_offset, last_offset in journal.acknowledged:
            stored = batches_at(append, first_offset)
            assert stored[-1].last_offset == last_offset, f"{append} ends at {last_offset}?"
            self.batches[append.place] += stored

    def end_offset(self, place: int) -> int:
        batches = self.batches[place]
        return batches[-1].last_offset + 1 if batches else 0

    def accept(self, place: int, found: list[StoredBatch], unresolved: list[Append]) -> int:
        """Compare a partition with what was found in it; returns how many batches came on top.

        Only whole batches of an append that nobody confirmed may follow what was acknowledged.
        """
        expected = self.batches[place]
        name = "-".join(map(str, PARTITIONS[place]))
        if found[: len(expected)] != expected:
            raise AssertionError(f"{name}: {_first_difference(expected, found)}")
        extra = found[len(expected) :]
        if extra:
            candidates = [
                batches_at(append, self.end_offset(place))
                for append in unresolved
                if append.place == place
            ]
            assert any(extra == candidate[: len(extra)] for candidate in candidates), (
                f"{name}: {len(extra)} batches from offset {extra[0].first_offset} on"
                " were never acknowledged"
            )
            self.batches[place] = found
        return len(extra)

    def facts(self, place: int) -> PartitionFacts:
        """What the batches of a partition mean for its producers."""
        facts = PartitionFacts()
        for stored in self.batches[place]:
            for batch in iter_batches(stored.content):
                if batch.header.magic == MAGIC_2 and batch.header.has_producer_id:
                    _take(facts, batch, stored)
        return facts

    def producers(self) -> dict[int, Producer]:
        """Where each producer goes on."""
        return {
            producer_id: Producer(
                producer_id,
                place,
                facts.epoch,
                facts.sent[-1].header.last_sequence + 1 if facts.sent else 0,
                facts.is_transactional,
                facts.transaction_start is not None,
            )
            for place in range(len(PARTITIONS))
            for producer_id, facts in self.facts(place).producers.items()
        }


def stored_batches(data: bytes) -> list[StoredBatch]:
    """The batches of a run of bytes of a log."""
    found: list[StoredBatch] = []
    for batch in iter_batches(data):
        header = batch.header
        # A wrapper of an old format only says where it ends; its records know where they begin.
        first = header.base_offset
        if header.magic < MAGIC_2:
            first = next(iter_records(batch)).offset
        found.append(StoredBatch(first, header.last_offset, _content(batch)))
    return found


@lru_cache(maxsize=100_000)
def record_times(content: bytes) -> tuple[tuple[int, int], ...]:
    """Timestamp and distance from the first offset of each record of a batch."""
    (batch,) = iter_batches(content)
    records = list(iter_records(batch))
    return tuple((record.timestamp, record.offset - records[0].offset) for record in records)


def batches_at(append: Append, first_offset: int) -> list[StoredBatch]:
    """How an append looks in a log if its first record has this offset."""
    stored = stored_batches(append.payload)
    if append.origin is AppendOrigin.REPLICATION:
        return stored
    shift = first_offset - stored[0].first_offset
    return [
        batch._replace(
            first_offset=batch.first_offset + shift, last_offset=batch.last_offset + shift
        )
        for batch in stored
    ]


def _content(batch: Batch) -> bytes:
    content = bytearray(batch.data)
    OFFSET_FIELD.pack_into(content, BASE_OFFSET_POSITION, 0)
    if batch.header.magic == MAGIC_2:
        LEADER_EPOCH_FIELD.pack_into(content, LEADER_EPOCH_POSITION, 0)
    return bytes(content)


def _take(facts: PartitionFacts, batch: Batch, stored: StoredBatch) -> None:
    header = batch.header
    producer = facts.producers.setdefault(header.producer_id, ProducerFacts())
    if header.producer_epoch != producer.epoch:
        producer.epoch = header.producer_epoch
        producer.sent.clear()
    if header.is_control:
        start = producer.transaction_start
        producer.transaction_start = None
        if parse_control_type(next(iter_records(batch)).key) is ControlType.ABORT:
            first = stored.first_offset if start is None else start
            facts.aborted.append(Aborted(header.producer_id, first, stored.last_offset))
        return
    producer.is_transactional = header.is_transactional
    if header.is_transactional and producer.transaction_start is None:
        producer.transaction_start = stored.first_offset
    producer.sent.append(Sent(header, stored.content, stored.first_offset))
    del producer.sent[:-_REMEMBERED_BATCHES]


def _first_difference(expected: list[StoredBatch], found: list[StoredBatch]) -> str:
    for wanted, got in zip(expected, found, strict=False):
        if wanted != got:
            return f"expected {wanted}, found {got}"
    return (
        f"{len(expected)} batches were acknowledged, {len(found)} are left;"
        f" the first one lost is {expected[len(found)]}"
    )
