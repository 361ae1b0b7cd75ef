"""A log driven at random against a simple model of it in memory."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage.append_info import AppendOrigin, ReadIsolation
from storage.errors import OffsetOutOfRangeError
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.batches import iter_batches, iter_records
from storage.records.builder import ANY_PRODUCER, ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import Codec
from storage.retention import enforce_retention
from storage.txn_index import AbortedTransaction
from tests.unit.storage.support import NOW, ManualClock, make_batch, open_log

Value = bytes | None
IDEMPOTENT = 1
TRANSACTIONAL = (7, 8)


@dataclass
class ModelBatch:
    """A batch as the model remembers it."""

    base: int
    values: list[Value]
    timestamp: int
    producer_id: int = -1
    is_transactional: bool = False
    ends_transaction: ControlType | None = None

    @property
    def last(self) -> int:
        return self.base + len(self.values) - 1


@dataclass
class Model:
    """What the log should hold."""

    batches: list[ModelBatch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    high_watermark: int = 0
    # State that is read from a snapshot does not tell which ends were replicated.
    reloaded_at: int = 0
    # Producer id, last offset and next sequence number of batches, also of those that are gone:
    # a log may forget them, but need not.
    sequences: list[tuple[int, int, int]] = field(default_factory=list)

    def records(self, offset: int, limit: int) -> list[tuple[int, Value]]:
        """What a read may see: whole batches before the limit."""
        return [
            (batch.base + number, value)
            for batch in self.batches
            if batch.last < limit
            for number, value in enumerate(batch.values)
            if offset <= batch.base + number
        ]

    def truncate(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.last < offset]
        self.sequences = [entry for entry in self.sequences if entry[1] < offset]
        self.end = min(self.end, offset)
        self.reloaded_at = self.end
        self.high_watermark = min(self.high_watermark, self.end)
        self.start = min(self.start, self.end)

    def next_sequence(self, producer_id: int) -> int:
        return next((s for p, _, s in reversed(self.sequences) if p == producer_id), 0)

    def transactions(self) -> list[tuple[int, int, int | None, bool]]:
        """Producer, first offset, offset of the marker (None: open), whether it was aborted."""
        found: list[tuple[int, int, int | None, bool]] = []
        opened: dict[int, int] = {}
        for batch in self.batches:
            if batch.ends_transaction is not None:
                first = opened.pop(batch.producer_id, batch.base)
                is_aborted = batch.ends_transaction is ControlType.ABORT
                found.append((batch.producer_id, first, batch.base, is_aborted))
            elif batch.is_transactional:
                opened.setdefault(batch.producer_id, batch.base)
        return found + [(producer, first, None, False) for producer, first in opened.items()]

    def last_stable_offset(self, ended_before: int = 0) -> int:
        """Transactions that ended before an offset count as replicated."""
        unstable = [
            first
            for _, first, end, _ in self.transactions()
            if end is None or end >= max(self.high_watermark, ended_before)
        ]
        first = min(unstable, default=self.high_watermark)
        return max(min(first, self.high_watermark), self.start)


class LogMachine(RuleBasedStateMachine):
    """Random appends, cuts, restarts and reads."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-model-"))
        self.clock = ManualClock()
        self.model = Model()
        self.log: Log
        self.config: LogConfig

    @initialize(
        segment_bytes=st.sampled_from([200, 500, 3000]),
        index_interval=st.sampled_from([1, 100, 4096]),
        index_bytes=st.sampled_from([36, 1000]),
    )
    def open(self, segment_bytes: int, index_interval: int, index_bytes: int) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval,
            segment_index_bytes=index_bytes,
            segment_ms=10_000,
        )
        self.log = open_log(self.directory, self.config, clock=self.clock)

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    # Appends

    def _append(
        self, values: list[bytes], codec: Codec = Codec.NONE, producer: ProducerInfo = ANY_PRODUCER
    ) -> None:
        batch = make_batch(*values, timestamp=self.clock(), codec=codec, producer=producer)
        info = self.log.append_as_leader(batch, leader_epoch=3)
        assert (info.first_offset, info.record_count) == (self.model.end, len(values))
        self.model.batches.append(
            ModelBatch(
                self.model.end,
                list(values),
                self.clock(),
                producer.producer_id,
                producer.is_transactional,
            )
        )
        self.model.end += len(values)
        if producer.producer_id >= 0:
            self.model.sequences.append(
                (
                    producer.producer_id,
                    self.model.end - 1,
                    producer.base_sequence + len(values),
                )
            )

    @rule(
        values=st.lists(st.binary(max_size=20), min_size=1, max_size=4),
        codec=st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4]),
    )
    def append(self, values: list[bytes], codec: Codec) -> None:
        self._append(values, codec)

    @rule(values=st.lists(st.binary(max_size=5), min_size=1, max_size=3), again=st.booleans())
    def append_idempotent(self, values: list[bytes], again: bool) -> None:
        sequence = self.model.next_sequence(IDEMPOTENT)
        producer = ProducerInfo(IDEMPOTENT, 0, sequence)
        self._append(values, producer=producer)
        if again:
            info = self.log.append_as_leader(make_batch(*values, producer=producer), 3)
            assert info.is_duplicate
            assert info.first_offset == self.model.end - len(values)

    @rule(producer_id=st.sampled_from(TRANSACTIONAL))
    def append_in_transaction(self, producer_id: int) -> None:
        sequence = self.model.next_sequence(producer_id)
        self._append([b"txn"], producer=ProducerInfo(producer_id, 0, sequence, True))

    @rule(
        producer_id=st.sampled_from(TRANSACTIONAL),
        control=st.sampled_from([ControlType.COMMIT, ControlType.ABORT]),
    )
    def end_transaction(self, producer_id: int, control: ControlType) -> None:
        marker = build_end_txn_batch(self.clock(), producer_id, 0, EndTxnMarker(control, 0))
        info = self.log.append_as_leader(marker, 3, AppendOrigin.COORDINATOR)
        assert info.first_offset == self.model.end
        (batch,) = iter_batches(marker)
        (record,) = iter_records(batch)
        self.model.batches.append(
            ModelBatch(
                self.model.end, [record.value], self.clock(), producer_id, ends_transaction=control
            )
        )
        self.model.end += 1

    @rule(gap=st.integers(0, 3), count=st.integers(1, 3))
    def append_as_follower(self, gap: int, count: int) -> None:
        base = self.model.end + gap
        values: list[Value] = [b"copy"] * count
        batch = make_batch(*[b"copy"] * count, base_offset=base, timestamp=self.clock())
        self.log.append_as_follower(bytes(batch))
        self.model.batches.append(ModelBatch(base, values, self.clock()))
        self.model.end = base + count

    # Time and offsets

    @rule(milliseconds=st.sampled_from([1, 50, 5000, 20_000]))
    def let_time_pass(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @rule(part=st.floats(0, 1))
    def move_high_watermark(self, part: float) -> None:
        model = self.model
        target = model.high_watermark + round((model.end - model.high_watermark) * part)
        assert self.log.update_high_watermark(target) == target
        model.high_watermark = target

    @rule(part=st.floats(0, 1))
    def advance_start(self, part: float) -> None:
        model = self.model
        target = model.start + round((model.high_watermark - model.start) * part)
        self.log.advance_start_offset(target)
        model.start = target

    # Cuts

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.model.end

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        # A replica never cuts off what is replicated; producers' state relies on that.
        model = self.model
        offset = model.high_watermark + round((model.end - model.high_watermark) * part)
        self.log.truncate_to(offset)
        model.truncate(offset)

    @rule(skipped=st.integers(0, 10))
    def start_anew(self, skipped: int) -> None:
        offset = self.model.end + skipped
        self.log.truncate_fully_and_start_at(offset)
        self.model = Model(start=offset, end=offset, high_watermark=offset)

    @rule(retention_ms=st.sampled_from([-1, 10, 6000]), retention_bytes=st.sampled_from([-1, 600]))
    def clean_up(self, retention_ms: int, retention_bytes: int) -> None:
        model = self.model
        self.log.update_config(
            replace(self.config, retention_ms=retention_ms, retention_bytes=retention_bytes)
        )
        hidden_before = model.start
        size_before = self.log.size_in_bytes
        enforce_retention(self.log)
        assert model.start <= self.log.start_offset <= model.high_watermark
        model.start = self.log.start_offset
        for batch in model.batches:
            if hidden_before <= batch.last < model.start:
                age = self.clock() - batch.timestamp
                assert 0 <= retention_ms < age or 0 <= retention_bytes < size_before

    # Restarts

    @rule(clean=st.booleans(), torn=st.binary(max_size=100))
    def restart(self, clean: bool, torn: bytes) -> None:
        recovery_point = self.log.recovery_point
        if clean:
            self.log.close()
        else:
            self.log.release_files()
            path = Path(self.log.segments.active.path())
            with path.open("ab") as file:
                file.write(torn)
        self.log = open_log(
            self.directory,
            self.config,
            clock=self.clock,
            clean=clean,
            start_offset=self.model.start,
            recovery_point=recovery_point,
        )
        # Nothing but batches and segments' names tells where a log ends: gaps may be forgotten.
        last = self.model.batches[-1].last + 1 if self.model.batches else 0
        base = self.log.segments.active.base_offset
        assert self.log.end_offset == max(last, base, self.model.start)
        assert self.log.end_offset <= self.model.end
        self.model.end = self.model.reloaded_at = self.log.end_offset
        self.model.high_watermark = min(self.model.high_watermark, self.model.end)
        self.log.update_high_watermark(self.model.high_watermark)

    # Reads

    @rule(part=st.floats(0, 1), max_bytes=st.sampled_from([1, 100, 1000, 1 << 20]))
    def read_from(self, part: float, max_bytes: int) -> None:
        model = self.model
        offset = model.start + round((model.end - model.start) * part)
        for isolation, limit in (
            (ReadIsolation.LOG_END, model.end),
            (ReadIsolation.HIGH_WATERMARK, model.high_watermark),
            (ReadIsolation.COMMITTED, self.log.last_stable_offset),
        ):
            read = self.log.read(offset, max_bytes, isolation)
            data = read.slice.read()
            assert len(data) == len(read.slice)
            found = [
                (record.offset, record.value)
                for batch in iter_batches(data)
                for record in iter_records(batch)
                if record.offset >= offset
            ]
            expected = model.records(offset, limit)
            assert found == expected[: len(found)]
            assert bool(found) == bool(expected)
            if isolation is ReadIsolation.COMMITTED and found:
                self._check_aborted(read.aborted or [], offset, found[-1][0])

    def _check_aborted(self, aborted: Sequence[AbortedTransaction], offset: int, last: int) -> None:
        """All that were aborted within the range must be named; more do no harm."""
        named = {(txn.producer_id, txn.first_offset) for txn in aborted}
        for producer, first, end, is_aborted in self.model.transactions():
            is_within = end is not None and end >= offset and self.model.start <= first <= last
            if is_aborted and is_within:
                assert (producer, first) in named

    @rule(outside=st.integers(1, 5))
    def read_outside(self, outside: int) -> None:
        for offset in (self.model.start - outside, self.model.end + outside):
            with pytest.raises(OffsetOutOfRangeError) as caught:
                self.log.read(offset, 100)
            assert caught.value.start_offset == self.model.start
            assert caught.value.end_offset == self.model.end

    @rule(back=st.integers(0, 30_000))
    def find_timestamp(self, back: int) -> None:
        timestamp = max(self.clock() - back, NOW)
        found = self.log.offset_for_timestamp(timestamp)
        # Records of one batch are a millisecond apart, markers stand alone.
        expected = [
            (batch.timestamp + number, batch.base + number)
            for batch in self.model.batches
            for number in range(len(batch.values))
            if batch.timestamp + number >= timestamp and batch.base + number >= self.model.start
        ]
        assert (found[:2] if found else None) == (expected[0] if expected else None)

    # Always

    @precondition(lambda self: hasattr(self, "log"))
    @invariant()
    def offsets_agree(self) -> None:
        log, model = self.log, self.model
        assert (log.start_offset, log.end_offset) == (model.start, model.end)
        assert log.high_watermark == model.high_watermark
        assert log.start_offset <= log.last_stable_offset <= log.high_watermark <= log.end_offset
        assert log.recovery_point <= log.end_offset
        begun_before_start = any(
            first < model.start and (end is None or end >= model.high_watermark)
            for _, first, end, _ in model.transactions()
        )
        if not begun_before_start:
            assert log.last_stable_offset in (
                model.last_stable_offset(),
                model.last_stable_offset(ended_before=model.reloaded_at),
            )
        assert log.segments.first.base_offset <= log.start_offset
        bases = [segment.base_offset for segment in log.segments]
        assert bases == sorted(set(bases))


TestLogAgainstModel = LogMachine.TestCase
TestLogAgainstModel.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
