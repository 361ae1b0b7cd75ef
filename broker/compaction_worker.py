"""A process that compacts, as the broker sees it: started when there is work, ended when idle.

Owns the process and its pipes. What goes through them is in `storage.compaction.job`.
"""

import asyncio
import contextlib
import sys
import time
from pathlib import Path

import storage
from storage.compaction.job import (
    MESSAGE_LENGTH,
    CleaningJob,
    WorkerMessage,
    decode_worker_message,
    encode_message,
)

WORKER_MODULE = "storage.compaction.worker"
_END_SECONDS = 5.0


class WorkerDiedError(Exception):
    """The process ended in the middle of its work."""


class CompactionWorker:
    """At most one process at a time, which does one job at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._idle_since = time.monotonic()

    @property
    def pid(self) -> int | None:
        """The process's id, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def idle_seconds(self) -> float:
        return time.monotonic() - self._idle_since

    async def send(self, job: CleaningJob) -> None:
        """Have a job done; what comes of it is to be received before the next one."""
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await _start()
        assert process.stdin is not None
        process.stdin.write(encode_message(job))
        with contextlib.suppress(ConnectionError):  # the next receive will tell
            await process.stdin.drain()

    async def receive(self) -> WorkerMessage:
        """The next thing that the process has to say; raises WorkerDiedError."""
        process = self._process
        if process is None or process.stdout is None:
            raise WorkerDiedError("There is no compaction worker")
        try:
            head = await process.stdout.readexactly(MESSAGE_LENGTH.size)
            data = await process.stdout.readexactly(*MESSAGE_LENGTH.unpack(head))
        except asyncio.IncompleteReadError:
            status = await process.wait()
            raise WorkerDiedError(f"The compaction worker ended with status {status}") from None
        self._idle_since = time.monotonic()
        return decode_worker_message(data)

    async def end(self) -> None:
        """Let the process end, which is idle."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_SECONDS)
        except TimeoutError:
            await self.kill()
        self._process = None

    async def kill(self) -> None:
        """End the process, whatever it does; it has stopped writing when this returns."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        self._process = None


async def _start() -> asyncio.subprocess.Process:
    """A fresh interpreter, not a copy of the broker with its threads and memory."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        WORKER_MODULE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # Where `-m` finds our packages, wherever the broker was started.
        cwd=Path(storage.__path__[0]).parent,
    )
