"""The log directories of a broker: what lies where, and moves of replicas from one to another.

A move copies a log into a `-future` directory, a bit at a time between other work, one partition
after the other, and puts the copy into the log's place once it has all of it. A broker that starts
again goes on with what it finds. How logs are copied is `storage.log_moves`' affair.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.failures import EXPECTED_FAILURES, ApiError
from broker.replica_manager import PartitionKey, ReplicaManager
from network.protocol import ErrorCode
from storage.log import Log
from storage.log_manager import LogManager
from storage.log_moves import copy_some, cut_to_length
from storage.segment_files import future_directory

logger = logging.getLogger(__name__)

NO_LAG_KNOWN = -1
LONGEST_DIRECTORY_NAME = 255


@dataclass(frozen=True, slots=True)
class DescribedReplica:
    """A log in a directory; its lag is how far a copy is behind the log that it is made of."""

    topic: str
    partition: int
    size: int
    lag: int
    is_future: bool


class LogDirs:
    """Where this broker's replicas lie."""

    def __init__(self, logs: LogManager, replicas: ReplicaManager) -> None:
        self._logs = logs
        self._replicas = replicas
        self._moving: set[PartitionKey] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def live(self) -> list[Path]:
        return self._logs.live_directories

    @property
    def offline(self) -> list[Path]:
        return self._logs.offline_directories

    def replicas_in(self, directory: Path) -> Iterator[DescribedReplica]:
        for log in self._logs.all_logs():
            if log.directory.parent == directory:
                yield DescribedReplica(
                    log.topic, log.partition, log.size_in_bytes, self._lag(log), log.is_future
                )

    def move(self, topic: str, partition: int, directory: Path) -> None:
        """Have a replica moved, or created, in a directory; the copying comes later.

        Raises ApiError. Asking for the directory where it lies ends a move that is under way.
        """
        key = (topic, partition)
        self._check_target(topic, partition, directory)
        held = self._replicas.partitions.get(key)
        if held is not None and held.log.is_offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        future = self._logs.get_future(topic, partition)
        if future is not None and future.directory.parent != directory:
            self._give_up(key)
        if held is None:
            self._logs.prefer_directory(topic, partition, directory)
            known = self._replicas.knows_of(topic, partition)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE if known else unknown)
        if held.log.directory.parent == directory:
            return
        if self._logs.get_future(topic, partition) is None:
            if self.offline:  # where another copy of it may lie
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
            logger.info("Moving %s-%d to %s", topic, partition, directory)
            held.future_log = self._logs.create_future(topic, partition, directory)
        self._begin(key)

    def resume(self) -> None:
        """Go on with the moves that an earlier life of this broker had begun.

        A log that was cut off by a crash may be shorter than its copy, which has to follow before
        other records take the place of the lost ones.
        """
        for future in [log for log in self._logs.all_logs() if log.is_future]:
            current = self._logs.get(future.topic, future.partition)
            if current is None:
                logger.warning("%s is a copy of nothing, it is left as it is", future.directory)
            else:
                cut_to_length(current, future)
                self._begin((future.topic, future.partition))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _check_target(self, topic: str, partition: int, directory: Path) -> None:
        if len(future_directory(topic, partition)) > LONGEST_DIRECTORY_NAME:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if directory in self.offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        if directory not in self.live:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND)

    def _lag(self, log: Log) -> int:
        held = self._replicas.partitions.get((log.topic, log.partition))
        if held is None or held.log.is_offline:
            return NO_LAG_KNOWN
        if log.is_future:
            return held.log.end_offset - log.end_offset
        return max(held.log.high_watermark - log.end_offset, 0)

    # Copying

    def _begin(self, key: PartitionKey) -> None:
        self._moving.add(key)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._copy_all(), name="log-moves")

    def _give_up(self, key: PartitionKey) -> None:
        self._moving.discard(key)
        self._logs.delete_future(*key)
        self._set_future(key, None)

    async def _copy_all(self) -> None:
        while self._moving:
            key = min(self._moving)
            try:
                await self._copy(key)
            except EXPECTED_FAILURES as error:
                logger.error("%s-%d is not moved: %s", *key, error)
            except Exception:
                logger.exception("%s-%d is not moved", *key)
            self._moving.discard(key)

    async def _copy(self, key: PartitionKey) -> None:
        while key in self._moving:
            current, future = self._logs.get(*key), self._logs.get_future(*key)
            if current is None or future is None:  # deleted meanwhile
                return
            if copy_some(current, future):
                self._put_in_place(key)
                return
            self._replicas.delayed_deletions.check(key)
            await asyncio.sleep(0)

    def _put_in_place(self, key: PartitionKey) -> None:
        log = self._logs.replace_with_future(*key)
        held = self._replicas.partitions.get(key)
        if held is not None:
            held.log = log
        self._set_future(key, None)
        logger.info("%s-%d now lies in %s", *key, log.directory.parent)

    def _set_future(self, key: PartitionKey, future: Log | None) -> None:
        held = self._replicas.partitions.get(key)
        if held is not None:
            held.future_log = future
        self._replicas.delayed_deletions.check(key)
