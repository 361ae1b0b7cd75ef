"""Stock clients as consumers of a group."""

import asyncio
from collections.abc import Iterable

import kafka
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as AioSticky,
)
from aiokafka.errors import CommitFailedError as AioCommitFailed
from aiokafka.errors import IllegalStateError
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import CommitFailedError
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

from tests.interop.group_ledger import Work
from tests.interop.group_work import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Task

POLL_MS = 50
POLL_RECORDS = 50
# A poll of kafka-python 3.0 whose time is up in the middle of a rebalance forgets its outcome.
LONG_POLL_MS = 1000

REBALANCE_ERRORS = {
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._STATE,
}
# The coordinator is away; whether it got the commit shows when it is back.
COORDINATOR_ERRORS = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
}


def confluent(task: Task) -> None:
    """librdkafka; it tells of lost partitions in callbacks, within poll."""
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": task.group,
            "partition.assignment.strategy": task.strategy,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": task.auto_commit,
            "auto.commit.interval.ms": 100,
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
        }
    )
    work = task.begin()

    def commit(only: set[int] | None = None) -> None:
        ranges = work.to_commit(only)
        if not ranges or task.auto_commit:
            return
        wanted = [ConfluentPartition(task.topic, one, end) for one, (_, end) in ranges.items()]
        try:
            consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in REBALANCE_ERRORS | COORDINATOR_ERRORS:
                raise
        else:
            work.committed(ranges)

    def assigned(_consumer: Consumer, partitions: list[ConfluentPartition]) -> None:
        work.assigned([one.partition for one in partitions])

    def revoked(_consumer: Consumer, partitions: list[ConfluentPartition]) -> None:
        numbers = {one.partition for one in partitions}
        commit(numbers)
        work.lost(numbers)

    def lost(_consumer: Consumer, partitions: list[ConfluentPartition]) -> None:
        work.lost([one.partition for one in partitions])

    consumer.subscribe([task.topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
    try:
        while not task.stop.is_set():
            for message in consumer.consume(POLL_RECORDS, POLL_MS / 1000):
                assert message.error() is None, message.error()
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                work.process(partition, offset)
            commit()
    finally:
        consumer.close()


class _KafkaPythonListener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, work: Work) -> None:
        self._work = work

    def on_partitions_revoked(self, revoked: Iterable[kafka.TopicPartition]) -> None:
        self._work.lost([one.partition for one in revoked])

    def on_partitions_assigned(self, assigned: Iterable[kafka.TopicPartition]) -> None:
        self._work.assigned([one.partition for one in assigned])


KAFKA_PYTHON_STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def kafka_python(task: Task) -> None:
    work = task.begin()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=task.bootstrap,
        group_id=task.group,
        partition_assignment_strategy=[KAFKA_PYTHON_STRATEGIES[task.strategy]],
        auto_offset_reset="earliest",
        enable_auto_commit=task.auto_commit,
        auto_commit_interval_ms=100,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        max_poll_records=POLL_RECORDS,
    )
    consumer.subscribe([task.topic], listener=_KafkaPythonListener(work))
    try:
        while not task.stop.is_set():
            for records in consumer.poll(timeout_ms=LONG_POLL_MS).values():
                for record in records:
                    work.process(record.partition, record.offset)
            if not task.auto_commit:
                _commit_with_kafka_python(consumer, task.topic, work)
    finally:
        consumer.close()


def _commit_with_kafka_python(consumer: kafka.KafkaConsumer, topic: str, work: Work) -> None:
    ranges = work.to_commit()
    if not ranges:
        return
    try:
        consumer.commit(
            {
                kafka.TopicPartition(topic, partition): OffsetAndMetadata(end, "", -1)
                for partition, (_, end) in ranges.items()
            }
        )
    except CommitFailedError:
        return  # another member has them by now, or will; the listener hears of it
    except KafkaPythonError as error:
        if not error.retriable:
            raise
        return
    work.committed(ranges)


AIOKAFKA_STRATEGIES = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}


class _AioListener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, work: Work) -> None:
        self._work = work

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._work.lost([one.partition for one in revoked])

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._work.assigned([one.partition for one in assigned])


def aiokafka(task: Task) -> None:
    asyncio.run(_aiokafka(task))


async def _aiokafka(task: Task) -> None:
    work = task.begin()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap,
        group_id=task.group,
        partition_assignment_strategy=[AIOKAFKA_STRATEGIES[task.strategy]],
        auto_offset_reset="earliest",
        enable_auto_commit=task.auto_commit,
        auto_commit_interval_ms=100,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        max_poll_records=POLL_RECORDS,
    )
    consumer.subscribe([task.topic], listener=_AioListener(work))
    await consumer.start()
    try:
        while not task.stop.is_set():
            for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                for record in records:
                    work.process(record.partition, record.offset)
            ranges = work.to_commit()
            if ranges and not task.auto_commit:
                wanted = {TopicPartition(task.topic, one): end for one, (_, end) in ranges.items()}
                try:
                    await consumer.commit(wanted)
                except (AioCommitFailed, IllegalStateError):
                    continue
                except AioKafkaError as error:
                    if not error.retriable:
                        raise
                    continue
                work.committed(ranges)
    finally:
        await consumer.stop()
