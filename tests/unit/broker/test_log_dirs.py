"""Moves between directories as they are under way, on real logs."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker.delayed_delete_records import DelayedDeleteRecords, WaitingDeletion
from broker.failures import ApiError
from broker.log_dirs import LogDirs
from broker.metadata_cache import MetadataCache
from broker.replica_manager import ReplicaManager
from broker.timing_wheel import TimingWheel
from network.protocol import ErrorCode
from network.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
)
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.log_moves import COPY_BYTES
from tests.support.partitions import BROKER_ID, decision, now_ms
from tests.support.raw_client import make_batch

# More than is copied in one go, so that a move has a middle.
VALUE = bytes(COPY_BYTES * 2 // 3)


class Place:
    """Two directories, and a topic `t` in the first of them."""

    def __init__(self, root: Path) -> None:
        self.one, self.two = root / "one", root / "two"
        self.logs = LogManager([self.one, self.two], LogConfig(), now_ms)
        self.logs.load()
        self.metadata = MetadataCache()
        self.replicas = ReplicaManager(
            BROKER_ID, self.logs, self.metadata, lambda _topic: LogConfig(), TimingWheel()
        )
        self.log_dirs = LogDirs(self.logs, self.replicas)
        self.logs.prefer_directory("t", 0, self.one)
        self.replicas.become_leader_or_follower("t", decision())
        for _ in range(6):
            self.append()

    def append(self) -> None:
        batch = memoryview(bytearray(make_batch(VALUE)))
        self.replicas.append("t", 0, batch, acks=-1)

    @property
    def log_place(self) -> Path:
        return self.replicas.partitions["t", 0].log.directory.parent

    async def settled(self) -> None:
        for _ in range(1000):
            if self.logs.get_future("t", 0) is None:
                return
            await asyncio.sleep(0)
        raise AssertionError("the move does not end")


def run(root: Path, scenario: Callable[[Place], Awaitable[None]]) -> None:
    async def within_loop() -> None:
        place = Place(root)
        try:
            await scenario(place)
        finally:
            await place.log_dirs.stop()
            place.logs.close()

    asyncio.run(within_loop())


def test_copy_is_described_with_its_lag_until_it_is_in_place(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.log_dirs.move("t", 0, place.two)
        [waiting] = place.log_dirs.replicas_in(place.two)
        assert (waiting.lag, waiting.is_future, waiting.size) == (6, True, 0)
        await asyncio.sleep(0)
        [begun] = place.log_dirs.replicas_in(place.two)
        assert 0 < begun.lag < 6
        [original] = place.log_dirs.replicas_in(place.one)
        assert (original.lag, original.is_future) == (0, False)
        await place.settled()
        assert place.log_place == place.two
        assert list(place.log_dirs.replicas_in(place.one)) == []
        place.append()
        [moved] = place.log_dirs.replicas_in(place.two)
        assert (moved.lag, moved.is_future) == (0, False)

    run(tmp_path, scenario)


def test_asking_for_where_it_lies_ends_a_move(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.log_dirs.move("t", 0, place.two)
        await asyncio.sleep(0)
        place.log_dirs.move("t", 0, place.one)
        assert list(place.log_dirs.replicas_in(place.two)) == []
        for _ in range(20):
            await asyncio.sleep(0)
        assert place.log_place == place.one
        place.log_dirs.move("t", 0, place.two)
        await place.settled()
        assert place.log_place == place.two

    run(tmp_path, scenario)


def test_deleted_records_wait_until_the_copy_has_followed(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        partition = place.replicas.partitions["t", 0]
        place.log_dirs.move("t", 0, place.two)
        before = partition.delete_records(5)
        result = DeleteRecordsPartitionResult(low_watermark=-1)
        waiting = WaitingDeletion(partition, before, result)
        deletion = DelayedDeleteRecords(place.metadata, DeleteRecordsResponse(), [waiting])
        assert deletion.try_result() is None
        parked = place.replicas.delayed_deletions.park(deletion, [partition.key], 60)
        done: list[int] = []
        parked.when_done(lambda _: done.append(result.low_watermark))
        await place.settled()
        assert done == [5]
        assert partition.log.start_offset == 5

    run(tmp_path, scenario)


def test_move_to_a_directory_that_fails_leaves_the_log_where_it_is(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.log_dirs.move("t", 0, place.two)
        await asyncio.sleep(0)
        place.logs.directories.fail(place.two, OSError(errno.EIO, "broken"))
        for _ in range(20):
            await asyncio.sleep(0)
        place.append()
        assert place.log_place == place.one
        with pytest.raises(ApiError) as refused:
            place.log_dirs.move("t", 0, place.two)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert place.log_dirs.offline == [place.two]

    run(tmp_path, scenario)


def test_copy_that_is_ahead_of_a_log_cut_by_a_crash_is_cut_before_it_goes_on(
    tmp_path: Path,
) -> None:
    async def begin(place: Place) -> None:
        place.log_dirs.move("t", 0, place.two)
        for _ in range(3):
            await asyncio.sleep(0)
        await place.log_dirs.stop()
        future = place.logs.get_future("t", 0)
        assert future is not None
        assert future.end_offset > 1
        place.replicas.partitions["t", 0].log.truncate_to(1)

    run(tmp_path, begin)

    async def go_on() -> None:
        logs = LogManager([tmp_path / "one", tmp_path / "two"], LogConfig(), now_ms)
        logs.load()
        replicas = ReplicaManager(
            BROKER_ID, logs, MetadataCache(), lambda _topic: LogConfig(), TimingWheel()
        )
        log_dirs = LogDirs(logs, replicas)
        log_dirs.resume()
        future = logs.get_future("t", 0)
        assert future is not None
        assert future.end_offset == 1
        await log_dirs.stop()
        logs.close()

    asyncio.run(go_on())
