"""Work that recurs: checkpoints and flushes in threads, short decisions on the loop itself."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

# Kafka writes "never" as the largest number there is.
LONGEST_INTERVAL_MS = 100 * 365 * 24 * 3600 * 1000


class BackgroundTasks:
    """The recurring tasks of a broker."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def every(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        """Run `work`, which may wait for the disk, in a thread after each interval."""

        async def in_thread() -> None:
            await asyncio.to_thread(work)

        self._start(name, interval_ms, in_thread)

    def every_on_loop(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        """Run `work`, which must be short and alone with the logs, after each interval."""

        async def on_loop() -> None:
            work()

        self._start(name, interval_ms, on_loop)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _start(self, name: str, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        if interval_ms <= LONGEST_INTERVAL_MS:
            task = asyncio.create_task(_repeat(name, interval_ms, work), name=name)
            self._tasks.append(task)


async def _repeat(name: str, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(interval_ms / 1000)
        try:
            await work()
        except Exception:
            logger.exception("%s failed; it is tried again in %d ms", name, interval_ms)
