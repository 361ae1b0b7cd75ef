"""What compaction leaves of one batch.

Owns the rules: which records stay, and the shape of the batch that holds what is left. Must not
know files or segments.

What is left keeps its offsets, timestamps, codec and producer. A batch of magic 2 also keeps its
first and last offset, whatever became of the records there, because its producer's sequence
numbers are counted by them.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from storage.compaction.job import LastRecord
from storage.compaction.offset_map import OffsetMap
from storage.compaction.record_spans import (
    RecordSpan,
    open_batch,
    read_timestamp_delta,
    with_timestamp_delta,
)
from storage.compaction.transactions import Transactions
from storage.records.batches import Batch
from storage.records.builder import build_empty_batch, seal_batch
from storage.records.compression import compress
from storage.records.layout import (
    BATCH_HEADER_SIZE,
    KNOWN_ATTRIBUTES,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_2,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    TimestampType,
)
from storage.records.legacy import Message, read_messages
from storage.records.legacy_builder import LegacyBuilder


class KeptBatch(NamedTuple):
    """A batch for the cleaned segment."""

    data: Buffer
    first_offset: int
    last_offset: int
    max_timestamp: int
    record_count: int


class BatchFilter:
    """Judges batches in the order of their offsets."""

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: Transactions,
        last_records: Mapping[int, LastRecord],
    ) -> None:
        self._map = offset_map
        self._transactions = transactions
        self._last_records = last_records
        self.records_read = 0

    def keep(self, batch: Batch, *, keep_deletes: bool) -> KeptBatch | None:
        """What stays of a batch; `keep_deletes`: tombstones and idle markers are not due yet."""
        header = batch.header
        if header.magic < MAGIC_2:
            return self._keep_legacy(batch, keep_deletes)
        if header.is_control:
            self.records_read += header.record_count
            is_idle = self._transactions.is_marker_idle(batch)
            if header.record_count and (keep_deletes or not is_idle):
                return _whole(batch, header.record_count)
            return self._keep_empty(header)
        if header.is_transactional and self._transactions.is_aborted(header):
            self.records_read += header.record_count
            return self._keep_empty(header)
        return self._keep_records(batch, keep_deletes)

    def _keep_records(self, batch: Batch, keep_deletes: bool) -> KeptBatch | None:
        header = batch.header
        self.records_read += header.record_count
        if header.record_count == 0:
            return self._keep_empty(header)
        if header.base_offset > self._map.latest_offset:
            return _whole(batch, header.record_count)
        marks = self._map.marks(header.base_offset, header.last_offset)
        if marks is not None:
            last_ones = marks.count(1)
            if not last_ones:
                return self._keep_empty(header)
            if last_ones == header.record_count and keep_deletes:
                return _whole(batch, header.record_count)
        data, spans = open_batch(batch)
        if marks is not None:
            kept = [s for s in spans if marks[s[2]] and (s[4] or keep_deletes)]
        else:
            kept = self._look_up(spans, header.base_offset, keep_deletes)
        if len(kept) == len(spans):
            return _whole(batch, len(spans))
        if not kept:
            return self._keep_empty(header)
        return _rebuild(header, data, kept)

    def _look_up(
        self, spans: list[RecordSpan], base_offset: int, keep_deletes: bool
    ) -> list[RecordSpan]:
        latest_offset = self._map.latest_offset
        found = iter(self._map.find([span[3] for span in spans if span[3] is not None]))
        kept = []
        for span in spans:
            offset = base_offset + span[2]
            if span[3] is None:
                if offset > latest_offset:
                    kept.append(span)
            elif next(found) <= offset and (span[4] or keep_deletes or offset > latest_offset):
                kept.append(span)
        return kept

    def _keep_empty(self, header: BatchHeader) -> KeptBatch | None:
        """An emptied batch stays only if nothing else tells of its producer's last doing."""
        last_record = self._last_records.get(header.producer_id)
        if last_record is None or not header.has_producer_id:
            return None
        if last_record.last_data_offset >= 0:
            is_last = header.last_offset == last_record.last_data_offset
        else:
            is_last = header.is_control and header.producer_epoch == last_record.producer_epoch
        if not is_last:
            return None
        return KeptBatch(
            build_empty_batch(header),
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            0,
        )

    # Magic 0 and 1

    def _keep_legacy(self, batch: Batch, keep_deletes: bool) -> KeptBatch | None:
        messages = read_messages(batch.data, batch.header)
        self.records_read += len(messages)
        kept = [m for m in messages if self._is_kept(m, keep_deletes)]
        if not kept:
            return None
        # Brokers of old could wrap messages of another magic than the wrapper's (KAFKA-4298).
        is_sound = all(message.magic == batch.header.magic for message in kept)
        if is_sound and len(kept) == len(messages):
            return _whole(batch, len(kept))
        return _rebuild_legacy(batch.header, kept)

    def _is_kept(self, message: Message, keep_deletes: bool) -> bool:
        offset, _, key, value, _ = message.record
        if offset > self._map.latest_offset:
            return True
        if key is None:
            return False
        return self._map.find((key,))[0] <= offset and (value is not None or keep_deletes)


def _whole(batch: Batch, record_count: int) -> KeptBatch:
    header = batch.header
    return KeptBatch(
        batch.data, header.base_offset, header.last_offset, header.max_timestamp, record_count
    )


def _rebuild(header: BatchHeader, data: bytes, kept: list[RecordSpan]) -> KeptBatch:
    """The batch with these records only. Its timestamps count from the first of them, as Kafka
    has it; otherwise records stay as they are."""
    is_append_time = header.attributes & LOG_APPEND_TIME_FLAG != 0
    deltas = [read_timestamp_delta(data, span) for span in kept]
    first_delta = deltas[0][0]
    if is_append_time:
        base_timestamp = max_timestamp = header.max_timestamp
        is_moved = any(delta for delta, _, _ in deltas)
    else:
        base_timestamp = header.base_timestamp + first_delta
        max_timestamp = max(header.base_timestamp + max(deltas)[0], NO_TIMESTAMP)
        is_moved = first_delta != 0
    if is_moved:
        records = b"".join(
            with_timestamp_delta(data, span, start, end, 0 if is_append_time else old - first_delta)
            for span, (old, start, end) in zip(kept, deltas, strict=True)
        )
    else:
        records = b"".join(_slices(data, kept))
    records = compress(header.codec, records)
    rebuilt = header._replace(
        batch_length=BATCH_HEADER_SIZE - LOG_OVERHEAD + len(records),
        attributes=header.attributes & KNOWN_ATTRIBUTES,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(kept),
    )
    return KeptBatch(
        seal_batch(rebuilt, records),
        header.base_offset,
        header.last_offset,
        max_timestamp,
        len(kept),
    )


def _slices(data: bytes, kept: list[RecordSpan]) -> Iterator[bytes]:
    """The bytes of the records, neighbours together."""
    run_start = run_end = kept[0][0]
    for span in kept:
        if span[0] != run_end:
            yield data[run_start:run_end]
            run_start = span[0]
        run_end = span[1]
    yield data[run_start:run_end]


def _rebuild_legacy(header: BatchHeader, kept: list[Message]) -> KeptBatch:
    log_append_time = None
    max_timestamp = max(message.record.timestamp for message in kept)
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        log_append_time = max_timestamp = header.max_timestamp
    builder = LegacyBuilder(
        header.magic,
        base_offset=kept[0].record.offset,
        codec=header.codec,
        log_append_time=log_append_time,
    )
    for message in kept:
        record = message.record
        builder.append(record.timestamp, record.key, record.value, record.offset)
    return KeptBatch(
        builder.build(),
        builder.last_offset,
        builder.last_offset,
        max_timestamp,
        builder.record_count,
    )
