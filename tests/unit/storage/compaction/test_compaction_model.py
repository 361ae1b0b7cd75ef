"""Random logs, compacted again and again, against a simple model of what must be left."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage.compaction.compact import compact_log
from storage.compaction.settings import CleanerSettings
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.builder import ProducerInfo
from storage.records.layout import Codec
from tests.unit.storage.compaction.support import (
    COMPACTED,
    KeyValue,
    Seen,
    append,
    batches_of,
    committed_of,
    end_transaction,
    keyed_batch,
    legacy_batch,
    open_compacted,
    producers_of,
    records_of,
    table_of,
    transactional,
)
from tests.unit.storage.support import ManualClock

IDEMPOTENT = 1
TRANSACTIONAL = (7, 8)
RETENTION_MS = 1000
OLD_FORMATS = ("0.9.0", "0.10.2")

keys = st.sampled_from([b"", b"a", b"b", b"c", b"d", b"longer than thirty-one bytes, a key"])
values = st.one_of(st.none(), st.binary(max_size=3))
pairs = st.lists(st.tuples(keys, values), min_size=1, max_size=6)
pairs_without_keys = st.lists(st.tuples(st.one_of(st.none(), keys), values), min_size=1, max_size=6)
codecs = st.sampled_from(Codec)


class CompactedLog(RuleBasedStateMachine):
    """A log and what it should hold. Records of transactions are `open` until they are decided."""

    @initialize(
        segment_bytes=st.sampled_from([600, 1500, 5000]),
        interval=st.sampled_from([1, 100, 1_000_000]),
        memory=st.sampled_from([200, 400, 1024 * 1024]),
    )
    def start(self, segment_bytes: int, interval: int, memory: int) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-compaction-"))
        self.clock = ManualClock()
        self.cleaner = CleanerSettings(dedupe_buffer_size=memory)
        # Not compacted by name, so that it takes records without keys.
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            segment_index_bytes=COMPACTED.segment_index_bytes,
            index_interval_bytes=interval,
            delete_retention_ms=RETENTION_MS,
            file_delete_delay_ms=0,
        )
        self.log = self._open(clean=False)
        self.records: dict[int, Seen] = {}
        self.aborted: set[int] = set()
        self.open: dict[int, list[int]] = {}
        self.sequences: dict[int, int] = {}

    def _open(self, *, clean: bool) -> Log:
        return open_compacted(self.directory, self.config, self.clock, clean=clean)

    # Writing

    @rule(pairs=pairs_without_keys, codec=codecs)
    def write(self, pairs: Sequence[KeyValue], codec: Codec) -> None:
        self._append(keyed_batch(pairs, codec, timestamp=self.clock.now), pairs)

    @rule(
        pairs=pairs_without_keys,
        magic=st.sampled_from([0, 1]),
        codec=st.sampled_from([Codec.NONE, Codec.GZIP]),
    )
    def write_as_old_broker(self, pairs: Sequence[KeyValue], magic: int, codec: Codec) -> None:
        """What was written before an upgrade lies in the log as it was."""
        offset = self.log.end_offset
        batch = legacy_batch(magic, pairs, codec, self.clock.now)
        self.log.update_config(replace(self.config, message_format_version=OLD_FORMATS[magic]))
        append(self.log, batch)
        self.log.update_config(self.config)
        self._remember(offset, pairs, self.clock.now if magic else None)

    @rule(pairs=pairs, codec=codecs)
    def write_idempotently(self, pairs: Sequence[KeyValue], codec: Codec) -> None:
        sequence = self.sequences.get(IDEMPOTENT, 0)
        producer = ProducerInfo(IDEMPOTENT, 0, sequence)
        self._append(keyed_batch(pairs, codec, producer, self.clock.now), pairs)
        self.sequences[IDEMPOTENT] = sequence + len(pairs)

    @rule(pairs=pairs, codec=codecs, producer_id=st.sampled_from(TRANSACTIONAL))
    def write_in_transaction(
        self, pairs: Sequence[KeyValue], codec: Codec, producer_id: int
    ) -> None:
        sequence = self.sequences.get(producer_id, 0)
        producer = transactional(producer_id, sequence)
        offset = self._append(keyed_batch(pairs, codec, producer, self.clock.now), pairs)
        self.sequences[producer_id] = sequence + len(pairs)
        self.open.setdefault(producer_id, []).extend(range(offset, offset + len(pairs)))

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), commits=st.booleans())
    def end(self, producer_id: int, commits: bool) -> None:
        end_transaction(self.log, producer_id, commits=commits)
        offsets = self.open.pop(producer_id, [])
        if not commits:
            self.aborted.update(offsets)

    def _append(self, batch: bytearray, pairs: Sequence[KeyValue]) -> int:
        offset = append(self.log, batch)
        self._remember(offset, pairs, self.clock.now)
        return offset

    def _remember(
        self,
        offset: int,
        pairs: Sequence[KeyValue],
        timestamp: int | None,
    ) -> None:
        for number, (key, value) in enumerate(pairs):
            time = -1 if timestamp is None else timestamp + number
            self.records[offset + number] = Seen(offset + number, key, value, time)

    # What happens meanwhile

    @rule(milliseconds=st.sampled_from([1, RETENTION_MS // 2, RETENTION_MS + 1]))
    def wait(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        producers = producers_of(self.log)
        cleaned_offset = self.log.cleaned_offset
        if clean:
            self.log.close()
        else:
            self.log.abandon()
        self.log = self._open(clean=clean)
        self.log.cleaned_offset = cleaned_offset
        self.log.update_high_watermark(self.log.end_offset)
        assert producers_of(self.log) == producers

    # Compaction

    @rule()
    def compact(self) -> None:
        committed = table_of(committed_of(self.log))
        segments = self._segments()
        dirty_from = self.log.cleaned_offset or 0
        summary = compact_log(self.log, self.cleaner)
        if summary is None:
            return
        assert summary.end_offset > dirty_from
        self._forget_superseded(dirty_from, summary.end_offset, segments)
        assert table_of(committed_of(self.log)) == committed

    def _segments(self) -> list[tuple[int, int, bool]]:
        """First offset, last offset, and whether tombstones stay, of each segment."""
        segments = list(self.log.segments)
        clean = [s for s in segments if s.base_offset < (self.log.cleaned_offset or 0)]
        horizon = clean[-1].modified_ms - RETENTION_MS if clean else 0
        ends = [s.base_offset - 1 for s in segments[1:]] + [self.log.end_offset]
        return [
            (segment.base_offset, end, segment.modified_ms > horizon)
            for segment, end in zip(segments, ends, strict=True)
        ]

    def _forget_superseded(
        self, dirty_from: int, end: int, segments: list[tuple[int, int, bool]]
    ) -> None:
        last: dict[bytes, int] = {}
        for offset, record in sorted(self.records.items()):
            is_put = dirty_from <= offset < end and offset not in self.aborted
            if is_put and record.key is not None:
                last[record.key] = offset
        for offset, record in list(self.records.items()):
            base, _, keeps = next(segment for segment in segments if offset <= segment[1])
            if offset in self.aborted:
                # Segments are cleaned whole, and aborted records go whatever their keys are.
                is_gone = base < end
            else:
                is_gone = offset < end and (
                    record.key is None
                    or last.get(record.key, -1) > offset
                    or (record.value is None and not keeps)
                )
            if is_gone:
                del self.records[offset]

    # What must hold at any time

    @invariant()
    @precondition(lambda self: hasattr(self, "log"))
    def holds_what_it_should(self) -> None:
        assert records_of(self.log) == [record for _, record in sorted(self.records.items())]

    @invariant()
    @precondition(lambda self: hasattr(self, "log"))
    def hides_aborted_records(self) -> None:
        undecided = min((min(offsets) for offsets in self.open.values()), default=1 << 62)
        assert committed_of(self.log) == [
            record
            for offset, record in sorted(self.records.items())
            if offset not in self.aborted and offset < undecided
        ]

    @invariant()
    @precondition(lambda self: hasattr(self, "log"))
    def finds_every_offset(self) -> None:
        for segment in self.log.segments:
            segment.indexes.check(segment.size)
        for batch in batches_of(self.log):
            for offset in {batch.header.base_offset, batch.header.last_offset}:
                data = self.log.read(offset, 1).slice.read()
                assert data[: len(batch.data)] == batch.data

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(max_examples=60, stateful_step_count=40)
