"""Random appends of every kind that a broker makes: all codecs, all sorts of producers.

Owns which partitions there are, how they are set up and what is written next. Everything follows
from a seed and from where the producers stand; must not know files, kills or what a log should
answer.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final, TypeGuard

from storage.append_info import AppendOrigin
from storage.log_config import LogConfig
from storage.records.batches import parse_header
from storage.records.builder import BatchBuilder, ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import MAGIC_1, Codec, set_base_offset, set_leader_epoch
from storage.records.legacy_builder import LegacyBuilder
from tests.crash.journal import Append

NOW: Final = 1_600_000_000_000
# Small enough that all reasons to roll come up: size, time and full indexes.
CONFIG: Final = LogConfig(
    segment_bytes=32 * 1024,
    index_interval_bytes=512,
    segment_index_bytes=640,
    segment_ms=60_000,
    flush_messages=2_000,
)
CONFIGS: Final = {
    "legacy": replace(CONFIG, message_format_version="0.10.2"),
    "mirror": replace(CONFIG, preallocate=True),
}
PARTITIONS: Final = (("orders", 0), ("orders", 1), ("orders", 2), ("legacy", 0), ("mirror", 0))
LEGACY_PLACE: Final = 3
MIRROR_PLACE: Final = 4
_CODECS: Final = tuple(Codec)
_COORDINATOR_EPOCH: Final = 1


def config_of(topic: str) -> LogConfig:
    return CONFIGS.get(topic, CONFIG)


def log_directories(root: Path) -> list[Path]:
    return [root / "disk-1", root / "disk-2"]


@dataclass(slots=True)
class Producer:
    """Where an idempotent producer stands in its one partition."""

    producer_id: int
    place: int
    epoch: int = 0
    next_sequence: int = 0
    is_transactional: bool = False
    in_transaction: bool = False


@dataclass(slots=True)
class Workload:
    """The next append, again and again."""

    random: Random
    # Grows with every record, over all lives of a writer: no two batches are alike.
    serial: int = 0
    producers: dict[int, Producer] = field(default_factory=dict)

    def next_append(self, end_offsets: list[int]) -> Append:
        """An append for one of the partitions, whose end offsets are given."""
        place = self.random.randrange(len(PARTITIONS))
        if place == LEGACY_PLACE:
            return Append(place, AppendOrigin.CLIENT, self._legacy())
        if place == MIRROR_PLACE:
            return Append(place, AppendOrigin.REPLICATION, self._replicated(end_offsets[place]))
        producer = self._producer(place)
        if self._ends_transaction(producer):
            return Append(place, AppendOrigin.COORDINATOR, bytes(self._marker(producer)))
        return Append(place, AppendOrigin.CLIENT, bytes(self._batch(producer)))

    # Producers

    def _producer(self, place: int) -> Producer | None:
        """A known producer, a new one, or None: a producer without idempotence."""
        chance = self.random.random()
        if chance < 0.2:
            return None
        known = [producer for producer in self.producers.values() if producer.place == place]
        if known and (len(known) > 8 or chance < 0.95):
            producer = self.random.choice(known)
            if not producer.in_transaction and self.random.random() < 0.02:
                producer.epoch += 1
                producer.next_sequence = 0
            return producer
        producer_id = 1_000 + max(self.producers, default=0)
        producer = Producer(producer_id, place, is_transactional=chance > 0.5)
        self.producers[producer_id] = producer
        return producer

    def _ends_transaction(self, producer: Producer | None) -> TypeGuard[Producer]:
        return producer is not None and producer.in_transaction and self.random.random() < 0.2

    def _info(self, producer: Producer | None) -> ProducerInfo:
        if producer is None:
            return ProducerInfo()
        return ProducerInfo(
            producer.producer_id,
            producer.epoch,
            producer.next_sequence,
            producer.is_transactional,
        )

    # Bytes

    def _batch(self, producer: Producer | None, base_offset: int = 0) -> bytearray:
        builder = BatchBuilder(
            base_offset=base_offset,
            codec=self.random.choice(_CODECS),
            producer=self._info(producer),
        )
        for _ in range(self.random.choice((1, 1, 1, 2, 5, 20))):
            builder.append(self._timestamp(), *self._record())
        if producer is not None:
            producer.next_sequence += builder.record_count
            producer.in_transaction = producer.is_transactional
        return builder.build()

    def _marker(self, producer: Producer) -> bytearray:
        outcome = self.random.choice((ControlType.COMMIT, ControlType.ABORT))
        marker = EndTxnMarker(outcome, _COORDINATOR_EPOCH)
        producer.in_transaction = False
        self.serial += 1
        return build_end_txn_batch(self._timestamp(), producer.producer_id, producer.epoch, marker)

    def _legacy(self) -> bytes:
        codec = self.random.choice([codec for codec in _CODECS if codec is not Codec.ZSTD])
        builder = LegacyBuilder(MAGIC_1, base_offset=0, codec=codec)
        for offset in range(self.random.choice((1, 2, 5))):
            builder.append(self._timestamp(), *self._record(), offset)
        return bytes(builder.build())

    def _replicated(self, end_offset: int) -> bytes:
        """What a follower fetches: several batches, with holes where compaction was at work."""
        payload = b""
        for _ in range(self.random.choice((1, 1, 3))):
            hole = self.random.choice((0, 0, 0, 4))
            producer = self._producer(MIRROR_PLACE)
            if self._ends_transaction(producer):
                batch = self._marker(producer)
                set_base_offset(batch, end_offset + hole)
            else:
                batch = self._batch(producer, end_offset + hole)
            # Leaders change, and later batches come from later leaders.
            set_leader_epoch(batch, (end_offset + hole) // 500)
            end_offset = parse_header(batch).next_offset
            payload += batch
        return payload

    def _record(self) -> tuple[bytes, bytes]:
        self.serial += 1
        text = f"record {self.serial} ".encode()
        return b"key %d" % self.random.randrange(100), text * self.random.choice((1, 2, 10))

    def _timestamp(self) -> int:
        """Mostly growing; producers' clocks differ."""
        return NOW + self.serial * 10 + self.random.randrange(-500, 500)
