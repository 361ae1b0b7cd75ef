"""Changes of configuration as brokers learn of them: numbered notices under /config/changes.

A notice says whose settings have changed; they are then read from their own place. Owns the order
in which notices are read and the purge of old ones, which every broker helps with.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from controller import znodes
from controller.metadata_store import MetadataStore
from controller.zookeeper import NoNodeError, ZooKeeperError

logger = logging.getLogger(__name__)

NOTICE_LIFE_MS: Final = 15 * 60 * 1000

Settings = Mapping[str, str]
Handler = Callable[[str, Settings], Awaitable[None] | None]
"""Is told a name and all settings that hold for it now."""


class ChangeListener:
    """Reads notices in their order, one at a time, and tells the handler of their kind."""

    def __init__(
        self, store: MetadataStore, handlers: Mapping[str, Handler], now_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._now_ms = now_ms
        self._last_number = -1
        self._noticed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Watch for notices, and have handlers take over what is there.

        Topics are read when their logs are loaded; the notices tell of what changed since.
        """
        self._store.client.watch_children(znodes.CONFIG_CHANGES, self._noticed.set)
        await self._read_notices()
        for kind in self._handlers.keys() - {znodes.TOPIC_CONFIGS}:
            for name, settings in (await self._store.configs(kind)).items():
                await self._tell(kind, name, settings)
        self._task = asyncio.create_task(self._run(), name="config-changes")

    async def stop(self) -> None:
        self._store.client.unwatch(znodes.CONFIG_CHANGES)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._noticed.wait()
            self._noticed.clear()
            try:
                await self._read_notices()
            except ZooKeeperError as error:
                # A new session, or the next notice, has them read.
                logger.warning("Changes of configuration could not be read: %s", error)
            except Exception:
                logger.exception("Changes of configuration could not be read")

    async def _read_notices(self) -> None:
        names = sorted(await self._store.client.children(znodes.CONFIG_CHANGES))
        now = self._now_ms()
        for name in names:
            number = _number(name)
            if number > self._last_number:
                await self._read_notice(f"{znodes.CONFIG_CHANGES}/{name}")
                self._last_number = number
        await asyncio.gather(
            *(self._purge(f"{znodes.CONFIG_CHANGES}/{name}", now) for name in names)
        )

    async def _read_notice(self, path: str) -> None:
        try:
            node = await self._store.client.get(path)
            kind, name = znodes.decode_config_change(path, node.data)
            settings = await self._store.config(kind, name)
        except NoNodeError:
            logger.warning("%s has gone before it was read", path)
        except znodes.MalformedNodeError as error:
            logger.error("A change of configuration is ignored: %s", error)
        else:
            logger.info("Processing override for entityPath: %s/%s", kind, name)
            await self._tell(kind, name, settings)

    async def _tell(self, kind: str, name: str, settings: Settings) -> None:
        """One handler's failure must not keep the others from what concerns them."""
        try:
            work = self._handlers[kind](name, settings)
            if work is not None:
                await work
        except Exception:
            logger.exception("The settings of %s/%s could not be applied", kind, name)

    async def _purge(self, path: str, now_ms: int) -> None:
        with suppress(NoNodeError):
            stat = await self._store.client.exists(path)
            if stat is not None and now_ms - stat.created_ms > NOTICE_LIFE_MS:
                await self._store.client.delete(path)


def _number(name: str) -> int:
    """The number that ZooKeeper gave a notice; what somebody else put there comes first."""
    digits = name.removeprefix(znodes.CONFIG_CHANGE_PREFIX.rpartition("/")[2])
    return int(digits) if digits.isdecimal() else -1
