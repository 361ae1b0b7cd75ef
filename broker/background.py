"""Work that recurs: checkpoints, flushes, retention. It runs in threads, never on the loop."""

import asyncio
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

LONGEST_SLEEP_SECONDS = 24 * 3600.0


class BackgroundTasks:
    """The recurring tasks of a broker."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def every(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        """Run `work` in a thread after each interval, until stopped; a failure is logged."""
        self._tasks.append(asyncio.create_task(self._repeat(name, interval_ms, work), name=name))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(min(interval_ms / 1000, LONGEST_SLEEP_SECONDS))
            if interval_ms / 1000 > LONGEST_SLEEP_SECONDS:
                continue
            try:
                await asyncio.to_thread(work)
            except Exception:
                logger.exception("%s failed; it is tried again in %d ms", name, interval_ms)
