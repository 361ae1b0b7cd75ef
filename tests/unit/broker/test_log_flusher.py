"""Flushes in threads, on real logs."""

import asyncio
from pathlib import Path

import pytest

from broker.log_flusher import LogFlusher
from storage.errors import LogDirectoryError
from storage.faulty_files import Fault, FaultyFiles
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from tests.support.partitions import now_ms
from tests.support.raw_client import make_batch


def append(log_manager: LogManager) -> None:
    log = log_manager.get_or_create("t", 0)
    log.append_as_leader(bytearray(make_batch(b"x")), 0)


def test_append_that_makes_a_flush_due_can_wait_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        flusher = LogFlusher()
        config = LogConfig(flush_messages=2)
        logs = LogManager([tmp_path], config, now_ms, on_flush_due=flusher.flush_due)
        logs.load()
        append(logs)
        log = logs.get_or_create("t", 0)
        assert flusher.pending(log) is None
        append(logs)
        flush = flusher.pending(log)
        assert flush is not None
        await flush
        assert log.recovery_point == 2
        await asyncio.sleep(0)
        assert not flusher.is_busy

    asyncio.run(scenario())


def test_rolled_segments_are_flushed_without_anybody_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        flusher = LogFlusher()
        config = LogConfig(segment_bytes=100)
        logs = LogManager([tmp_path], config, now_ms, on_roll=flusher.rolled)
        logs.load()
        append(logs)
        append(logs)
        assert not flusher.is_busy
        await flusher.stop()
        assert logs.get_or_create("t", 0).recovery_point == 1

    asyncio.run(scenario())


def test_failed_flush_reaches_the_append_that_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        flusher = LogFlusher()
        files = FaultyFiles()
        config = LogConfig(flush_messages=1)
        logs = LogManager([tmp_path], config, now_ms, files, on_flush_due=flusher.flush_due)
        logs.load()
        log = logs.get_or_create("t", 0)
        files.faults.append(Fault("sync", path_contains="t-0"))
        append(logs)
        flush = flusher.pending(log)
        assert flush is not None
        with pytest.raises(LogDirectoryError):
            await flush

    asyncio.run(scenario())
