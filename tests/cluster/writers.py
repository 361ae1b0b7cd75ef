"""Writes to every broker all the time, whoever leads, and a record of who took what when."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from network.client import BrokerConnection
from network.protocol import ErrorCode
from network.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from storage.records import iter_batches
from tests.support.raw_client import make_batch

PRODUCE_VERSION = 8
PAUSE_SECONDS = 0.01
ANSWER_SECONDS = 10.0

Partition = tuple[str, int]


@dataclass(frozen=True)
class Accepted:
    """A write that a broker took: between when, and where it put it."""

    broker: int
    partition: Partition
    started: float
    ended: float
    offset: int


@dataclass
class Writer:
    """Writes to one broker, with acks=1, into every partition in turn."""

    broker: int
    port: int
    partitions: list[Partition]
    accepted: list[Accepted] = field(default_factory=list)

    async def run(self) -> None:
        """Until it is cancelled."""
        async with BrokerConnection("127.0.0.1", self.port, f"writer-{self.broker}") as connection:
            while True:
                for partition in self.partitions:
                    await self._write(connection, partition)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _write(self, connection: BrokerConnection, partition: Partition) -> None:
        topic, number = partition
        records = memoryview(bytearray(make_batch(b"x")))
        data = [PartitionProduceData(index=number, records=records)]
        request = ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        started = time.monotonic()
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await connection.ask(request, PRODUCE_VERSION)
        result = answer.responses[0].partition_responses[0]  # type: ignore[attr-defined]
        if result.error_code == ErrorCode.NONE:
            ended = time.monotonic()
            self.accepted.append(
                Accepted(self.broker, partition, started, ended, result.base_offset)
            )


def leader_epochs(directory: Path, partition: Partition) -> dict[int, int]:
    """The leader epoch under which each batch of a replica was written, by its base offset."""
    topic, number = partition
    epochs = {}
    for segment in sorted((directory / f"{topic}-{number}").glob("*.log")):
        for batch in iter_batches(segment.read_bytes()):
            epochs[batch.header.base_offset] = batch.header.partition_leader_epoch
    return epochs


def check_no_two_leaders(
    accepted: Iterable[Accepted], directories: list[Path], healed: float
) -> None:
    """Every leader epoch is one broker's; once the cluster is healed, only the last takes writes.

    Until the controller can tell it, a leader that was replaced goes on, as Kafka's does.
    """
    by_partition: dict[Partition, list[Accepted]] = {}
    for one in accepted:
        by_partition.setdefault(one.partition, []).append(one)
    for partition, writes in by_partition.items():
        epochs = [leader_epochs(directory, partition) for directory in directories]
        dated = [(epochs[one.broker][one.offset], one) for one in writes]
        owners: dict[int, int] = {}
        for epoch, one in dated:
            owner = owners.setdefault(epoch, one.broker)
            assert owner == one.broker, f"{owner} and {one.broker} led {partition} in {epoch}"
        last = max(owners)
        late = [one for epoch, one in dated if epoch < last and one.started > healed]
        assert not late, f"{partition}: an epoch before {last} took {late[0]}"
