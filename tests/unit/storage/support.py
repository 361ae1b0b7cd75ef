"""What the storage tests share: a clock that tests move, and batches."""

from pathlib import Path

from storage.environment import Environment
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.records.batches import iter_batches, iter_records
from storage.records.builder import ANY_PRODUCER, BatchBuilder, ProducerInfo
from storage.records.layout import Codec

NOW = 1_600_000_000_000


class ManualClock:
    """Milliseconds that pass only when a test says so."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds


def make_batch(
    *values: bytes,
    timestamp: int = NOW,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    producer: ProducerInfo = ANY_PRODUCER,
    leader_epoch: int = -1,
) -> bytearray:
    """A batch of magic 2 with one record per value; each record is a millisecond younger."""
    builder = BatchBuilder(
        base_offset=base_offset, codec=codec, producer=producer, leader_epoch=leader_epoch
    )
    for number, value in enumerate(values or (b"value",)):
        builder.append(timestamp + number, b"key", value)
    return builder.build()


def environment(clock: ManualClock | None = None, files: Files | None = None) -> Environment:
    return Environment(clock=clock or ManualClock(), files=files or Files())


def open_log(
    directory: Path,
    config: LogConfig | None = None,
    *,
    clock: ManualClock | None = None,
    files: Files | None = None,
    recovery_point: int = 0,
    start_offset: int = 0,
    clean: bool = False,
) -> Log:
    return Log(
        environment(clock, files),
        directory / "topic-0",
        config or LogConfig(),
        recovery_point=recovery_point,
        start_offset=start_offset,
        clean=clean,
    )


def append_values(log: Log, *values: bytes, timestamp: int = NOW) -> list[int]:
    """Append one batch per value and move the high watermark along; returns the offsets."""
    offsets = [
        log.append_as_leader(make_batch(value, timestamp=timestamp), 0).first_offset
        for value in values
    ]
    log.update_high_watermark(log.end_offset)
    return offsets


def read_values(log: Log, offset: int | None = None) -> list[tuple[int, bytes | None]]:
    """Offset and value of every record from an offset on, read batch by batch to the end."""
    found: list[tuple[int, bytes | None]] = []
    position = log.start_offset if offset is None else offset
    while True:
        data = log.read(position, 1 << 20).slice.read()
        if not data:
            return found
        for batch in iter_batches(data):
            found += [
                (record.offset, record.value)
                for record in iter_records(batch)
                if record.offset >= position
            ]
            position = batch.header.next_offset
