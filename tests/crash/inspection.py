"""Holds reopened logs against the model: every way to look into a log must tell the same.

Owns the checks of what a log answers: reads, look-ups by offset and by timestamp, leader epochs,
transactions, and what producers are told that send again. Must not know how the writer ended.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate
from random import Random
from typing import Final

from storage.append_info import ReadIsolation
from storage.batch_scan import scan_headers
from storage.errors import OutOfOrderSequenceError, ProducerFencedError
from storage.log import Log
from storage.log_manager import LogManager
from storage.records.builder import BatchBuilder, ProducerInfo
from storage.records.layout import MAGIC_2
from storage.segment import Segment
from tests.crash.journal import Append
from tests.crash.model import (
    Model,
    PartitionFacts,
    ProducerFacts,
    StoredBatch,
    record_times,
    stored_batches,
)
from tests.crash.workload import NOW, PARTITIONS

_READ_SIZES: Final = (1, 700, 5_000, 100_000)
_EVERYTHING: Final = 1 << 30


def check_logs(
    logs: LogManager, model: Model, unresolved: list[Append], random: Random
) -> list[int]:
    """Check all partitions; what was found on top of the acknowledged joins the model.

    Returns how many batches that were for each partition.
    """
    extra: list[int] = []
    for place, (topic, partition) in enumerate(PARTITIONS):
        log = logs.get(topic, partition)
        if log is None:
            extra.append(model.accept(place, [], []))
            continue
        extra.append(model.accept(place, read_all(log, random), unresolved))
        check_log(log, model, place, random)
    return extra


def check_log(log: Log, model: Model, place: int, random: Random) -> None:
    """Check one partition, whose batches are those of the model."""
    batches = model.batches[place]
    assert log.end_offset == model.end_offset(place)
    log.update_high_watermark(log.end_offset)
    check_offsets(log, batches, random)
    check_timestamps(log, batches, random)
    check_epochs(log)
    for segment in log.segments:
        check_index_entries(segment)
    facts = model.facts(place)
    check_transactions(log, facts)
    check_producers(log, facts)
    assert log.end_offset == model.end_offset(place), "a check has written something"


def read_all(log: Log, random: Random, end_offset: int | None = None) -> list[StoredBatch]:
    """All batches of a log, by reads of various sizes."""
    found: list[StoredBatch] = []
    offset = log.start_offset
    end_offset = log.end_offset if end_offset is None else end_offset
    while offset < end_offset:
        read = log.read(offset, random.choice(_READ_SIZES), ReadIsolation.LOG_END)
        batches = stored_batches(read.slice.read())
        assert batches, f"{log.name}: nothing found at {offset}, before {end_offset}"
        found += batches
        offset = batches[-1].last_offset + 1
    return found


def check_offsets(log: Log, batches: list[StoredBatch], random: Random) -> None:
    """A read at any offset begins with the first batch that ends at or after it."""
    if not batches:
        return
    wanted = [0, log.end_offset - 1, *(random.randrange(log.end_offset) for _ in range(40))]
    for offset in wanted:
        expected = batches[bisect_left(batches, offset, key=lambda batch: batch.last_offset)]
        data = log.read(offset, 1, ReadIsolation.LOG_END).slice.read()
        assert stored_batches(data)[0] == expected, f"{log.name}: wrong batch for {offset}"


def check_timestamps(log: Log, batches: list[StoredBatch], random: Random) -> None:
    """A look-up by timestamp finds what a search through all records finds."""
    records = [
        (timestamp, batch.first_offset + delta)
        for batch in batches
        for timestamp, delta in record_times(batch.content)
    ]
    if not records:
        return
    times = [random.choice(records)[0] + random.choice((0, 1)) for _ in range(20)]
    latest = max(timestamp for timestamp, _ in records)
    for wanted in [0, latest, latest + 1, *times]:
        expected = next((record for record in records if record[0] >= wanted), None)
        found = log.offset_for_timestamp(wanted)
        assert (found and found[:2]) == expected, f"{log.name}: wrong record for {wanted}"
    youngest = log.max_timestamp_offset()
    assert youngest is not None
    assert youngest[:2] == next(record for record in records if record[0] == latest)


def check_epochs(log: Log) -> None:
    """The list of leader epochs agrees with the batches."""
    for segment in log.segments:
        for _, header in scan_headers(segment.descriptor(), 0, segment.size):
            if header.magic == MAGIC_2 and header.base_offset >= log.start_offset:
                known = log.epochs.epoch_at(header.base_offset)
                assert known == header.partition_leader_epoch, f"{log.name}: {header}"


def check_index_entries(segment: Segment) -> None:
    """Every index entry names a batch that is there and says the truth of it."""
    headers = dict(scan_headers(segment.descriptor(), 0, segment.size))
    offsets = segment.indexes.offsets
    for slot in range(offsets.entries):
        offset, position = offsets.entry(slot)
        assert position in headers, f"{segment}: no batch at {position}"
        assert headers[position].base_offset <= offset, f"{segment}: {offset} is not at {position}"
    times = segment.indexes.times
    entries = [times.entry(slot) for slot in range(times.entries)]
    assert entries == sorted(entries), f"{segment}: its time index is out of order"
    ends = [header.last_offset for header in headers.values()]
    youngest = list(accumulate((header.max_timestamp for header in headers.values()), max))
    for timestamp, offset in entries:
        expected = youngest[bisect_right(ends, offset) - 1]
        assert timestamp == expected, f"{segment}: {timestamp} at {offset}"
    assert segment.largest[0] == (youngest[-1] if youngest else -1)


def check_transactions(log: Log, facts: PartitionFacts) -> None:
    """Aborted transactions are known, open ones hold the last stable offset back."""
    unstable = facts.first_unstable_offset()
    assert log.last_stable_offset == (log.high_watermark if unstable is None else unstable)
    known = [entry[:3] for entry in log.aborted_transactions(0, log.end_offset)]
    assert known == facts.aborted
    if log.start_offset < log.last_stable_offset:
        read = log.read(log.start_offset, _EVERYTHING, ReadIsolation.COMMITTED)
        assert read.aborted is not None
        assert {entry[:3] for entry in read.aborted} <= set(facts.aborted)


def check_producers(log: Log, facts: PartitionFacts) -> None:
    """Duplicates get the first answer again, gaps and old epochs are refused."""
    assert set(log.producers.producers) == set(facts.producers)
    if log.rules.magic < MAGIC_2:
        return
    for producer_id, producer in facts.producers.items():
        if producer.sent:
            _check_duplicates(log, producer)
            _check_refusals(log, producer_id, producer)


def _check_duplicates(log: Log, producer: ProducerFacts) -> None:
    *older, last = producer.sent
    answer = log.append_as_leader(bytearray(last.content), log.latest_epoch)
    assert answer.is_duplicate
    assert answer.first_offset == last.first_offset
    # A snapshot holds the last batch of a producer only, so others may be forgotten: then they
    # are out of order, never written twice.
    for sent in older:
        try:
            answer = log.append_as_leader(bytearray(sent.content), log.latest_epoch)
        except OutOfOrderSequenceError:
            continue
        assert answer.is_duplicate
        assert answer.first_offset == sent.first_offset


def _check_refusals(log: Log, producer_id: int, producer: ProducerFacts) -> None:
    next_sequence = producer.sent[-1].header.last_sequence + 1
    gap = _batch(producer_id, producer.epoch, next_sequence + 1, producer.is_transactional)
    assert _is_refused(log, gap, OutOfOrderSequenceError)
    if producer.epoch > 0:
        stale = _batch(producer_id, producer.epoch - 1, next_sequence, producer.is_transactional)
        assert _is_refused(log, stale, ProducerFencedError)


def _is_refused(log: Log, batch: bytearray, error: type[Exception]) -> bool:
    try:
        log.append_as_leader(batch, log.latest_epoch)
    except error:
        return True
    return False


def _batch(producer_id: int, epoch: int, sequence: int, is_transactional: bool) -> bytearray:
    builder = BatchBuilder(producer=ProducerInfo(producer_id, epoch, sequence, is_transactional))
    builder.append(NOW, b"key", b"must be refused")
    return builder.build()
