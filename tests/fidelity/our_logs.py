"""Logs written by our own storage engine, with what a consumer must read from them.

Owns what goes into the topics; expectations come from what was put in, never from reading it back.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from storage.append_info import AppendOrigin
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.records import BatchBuilder, Codec, ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import set_base_offset
from tests.fidelity.consumed import ConsumedRecord
from tests.fidelity.fixture_logs import FixtureLog, batches_of
from tests.fidelity.samples import FIRST_TIMESTAMP, Sample, Samples

SMALL: Final = LogConfig(segment_bytes=6000, index_interval_bytes=400, retention_ms=-1)
LAST_EPOCH: Final = 2
NOW: Final = FIRST_TIMESTAMP + 1_000_000
_COORDINATOR_EPOCH: Final = 7


@dataclass(slots=True)
class OurLog:
    """A log in the making, and what its readers must see."""

    log: Log
    epoch: int = 0
    records: list[ConsumedRecord] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)

    def expect(self, sample: Sample, offset: int, **changes: object) -> None:
        record = ConsumedRecord(
            offset, sample.timestamp, "CreateTime", sample.key, sample.value, sample.headers
        )
        self.records.append(record._replace(**changes))  # type: ignore[arg-type]

    def append(
        self,
        samples: Iterable[Sample],
        codec: Codec = Codec.NONE,
        producer: ProducerInfo | None = None,
        **changes: object,
    ) -> list[int]:
        """Append one batch of records; returns their offsets."""
        builder = BatchBuilder(codec=codec, producer=producer or ProducerInfo())
        offsets: list[int] = []
        for sample in samples:
            builder.append(sample.timestamp, sample.key, sample.value, sample.headers)
            offsets.append(self.log.end_offset + len(offsets))
            self.expect(sample, offsets[-1], **changes)
        self.append_bytes(builder.build())
        return offsets

    def append_bytes(self, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
        self.log.append_as_leader(batch, self.epoch, origin)
        self.log.update_high_watermark(self.log.end_offset)


class OurDirectory:
    """A log directory with one log per way of writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.configs: dict[str, LogConfig] = {}
        self.logs: dict[str, OurLog] = {}
        self._manager = LogManager([path], SMALL, lambda: NOW)

    def write(self) -> None:
        """Write everything and stop cleanly."""
        for codec in Codec:
            self._create(f"built-{codec.name.lower()}", _write_built(codec))
            self._create(f"received-{codec.name.lower()}", _write_received(codec))
            name = "uncompressed" if codec is Codec.NONE else codec.name.lower()
            stored = replace(SMALL, compression_type=name)
            self._create(f"stored-{codec.name.lower()}", _write_built(Codec.NONE), stored)
        stamped = replace(SMALL, message_timestamp_type="LogAppendTime")
        self._create("append-time", _write_append_time, stamped)
        self._create("idempotent", _write_idempotent)
        self._create("transactional", _write_transactions)
        self._create("deleted-records", _write_and_delete_records)
        self._create("truncated", _write_and_truncate)
        for magic, version in ((0, "0.9.0"), (1, "0.10.2")):
            old = replace(SMALL, message_format_version=version)
            for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
                self._create(f"v{magic}-{codec.name.lower()}", _write_old(magic, codec), old)
        self._manager.close()

    @property
    def partitions(self) -> list[tuple[str, int]]:
        return [(topic, 0) for topic in self.logs]

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.path.glob(f"*-0/*{suffix}"))

    def expected(self, isolation: str) -> dict[tuple[str, int], list[ConsumedRecord]]:
        hides = isolation == "read_committed"
        return {
            (topic, 0): [r for r in log.records if not hides or r.offset not in log.hidden]
            for topic, log in self.logs.items()
        }

    def _create(
        self, topic: str, write: Callable[[OurLog], None], config: LogConfig = SMALL
    ) -> None:
        self.configs[topic] = config
        self.logs[topic] = ours = OurLog(self._manager.get_or_create(topic, 0, config))
        write(ours)


def _write_built(codec: Codec) -> Callable[[OurLog], None]:
    def write(ours: OurLog) -> None:
        for epoch in (0, LAST_EPOCH):
            ours.epoch = epoch
            for batch in Samples(f"built {codec.name} {epoch}").batches(20):
                ours.append(batch, codec)

    return write


def _write_received(codec: Codec) -> Callable[[OurLog], None]:
    """Batches as librdkafka, kafka-python and Kafka's own producer have sent them."""

    def write(ours: OurLog) -> None:
        ours.epoch = LAST_EPOCH
        fixture = FixtureLog("2.5.1", f"sent-{codec.name.lower()}-0")
        ours.records = fixture.consumed()
        for path in fixture.files(".log"):
            for batch in batches_of(path):
                sent = bytearray(batch.data)
                set_base_offset(sent, 0)
                ours.append_bytes(sent)

    return write


def _write_append_time(ours: OurLog) -> None:
    ours.epoch = LAST_EPOCH
    for codec in (Codec.NONE, Codec.GZIP, Codec.ZSTD):
        for batch in Samples(f"append time {codec.name}").batches(6):
            ours.append(batch, codec, timestamp=NOW, timestamp_type="LogAppendTime")


def _write_idempotent(ours: OurLog) -> None:
    ours.epoch = LAST_EPOCH
    next_sequences = {10: 0, 11: 0, 12: 0}
    for number, batch in enumerate(Samples("idempotent", first_timestamp=NOW).batches(30, 4)):
        producer_id = 10 + number % 3
        producer = ProducerInfo(producer_id, 1, next_sequences[producer_id])
        next_sequences[producer_id] += len(ours.append(batch, producer=producer))


def _write_transactions(ours: OurLog) -> None:
    """Two producers at a time; every third transaction of each is aborted."""
    ours.epoch = LAST_EPOCH
    samples = Samples("transactions", first_timestamp=NOW)
    sequences = {20: 0, 21: 0}
    for number in range(12):
        written: dict[int, list[int]] = {20: [], 21: []}
        for producer_id in (20, 21, 20):
            producer = ProducerInfo(producer_id, 0, sequences[producer_id], is_transactional=True)
            offsets = ours.append(samples.take(2), Codec(number % len(Codec)), producer)
            written[producer_id] += offsets
            sequences[producer_id] += len(offsets)
        for producer_id in (20, 21):
            aborts = (number + producer_id) % 3 == 0
            kind = ControlType.ABORT if aborts else ControlType.COMMIT
            marker = EndTxnMarker(kind, _COORDINATOR_EPOCH)
            ours.append_bytes(
                build_end_txn_batch(NOW, producer_id, 0, marker), AppendOrigin.COORDINATOR
            )
            if aborts:
                ours.hidden.update(written[producer_id])


def _write_and_delete_records(ours: OurLog) -> None:
    _write_built(Codec.NONE)(ours)
    start = ours.records[len(ours.records) // 2].offset
    ours.log.advance_start_offset(start)
    ours.records = [record for record in ours.records if record.offset >= start]


def _write_and_truncate(ours: OurLog) -> None:
    """What a follower does: cut off what the new leader does not have, and go on."""
    ours.epoch = LAST_EPOCH
    samples = Samples("truncated")
    for batch in samples.batches(30):
        ours.append(batch, Codec.LZ4)
    end = ours.log.end_offset
    kept = list(ours.records)
    for batch in samples.batches(20):
        ours.append(batch)
    ours.log.truncate_to(end)
    ours.records = kept
    for batch in Samples("after truncation").batches(10):
        ours.append(batch)


def _write_old(magic: int, codec: Codec) -> Callable[[OurLog], None]:
    """Converted on append. Plain messages come one by one: the dump tool knows no other index."""

    def write(ours: OurLog) -> None:
        largest = 1 if codec is Codec.NONE else 8
        samples = Samples(f"old {magic} {codec.name}", with_headers=False)
        for batch in samples.batches(40, largest):
            if magic == 0:
                ours.append(batch, codec, timestamp=-1, timestamp_type="NoTimestampType")
            else:
                ours.append(batch, codec)

    return write
