"""fsync in threads: for logs whose flush.messages is reached, and for segments just rolled.

An append that made a flush due is answered when that flush is done; the loop never waits for it.
"""

import asyncio
import logging

from storage.errors import StorageError
from storage.log import Log

logger = logging.getLogger(__name__)


class LogFlusher:
    """Flushes that are under way."""

    def __init__(self) -> None:
        self._due: dict[Log, asyncio.Task[None]] = {}
        self._rolled: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether there is any flush that an append may have to wait for."""
        return bool(self._due)

    def flush_due(self, log: Log) -> None:
        """Begin to flush all that the log holds now."""
        task = asyncio.create_task(asyncio.to_thread(log.flush))
        self._due[log] = task
        task.add_done_callback(lambda done: self._forget(log, done))

    def rolled(self, log: Log) -> None:
        """Begin to flush the segments before the active one; nobody waits for it."""
        offset = log.segments.active.base_offset
        task = asyncio.create_task(asyncio.to_thread(log.flush, offset))
        self._rolled.add(task)
        task.add_done_callback(self._finish_rolled)

    def pending(self, log: Log) -> "asyncio.Task[None] | None":
        """The newest flush that the log's last appends made due, while it is under way."""
        return self._due.get(log)

    async def stop(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._due.values(), *self._rolled, return_exceptions=True)

    def _forget(self, log: Log, done: "asyncio.Task[None]") -> None:
        if self._due.get(log) is done:
            del self._due[log]
        _report(done)

    def _finish_rolled(self, done: "asyncio.Task[None]") -> None:
        self._rolled.discard(done)
        _report(done)


def _report(done: "asyncio.Task[None]") -> None:
    if done.cancelled():
        return
    error = done.exception()
    if error is not None and not isinstance(error, StorageError):
        logger.error("A flush failed", exc_info=error)
