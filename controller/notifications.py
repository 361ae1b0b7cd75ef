"""Notices that brokers leave in ZooKeeper for the controller: numbered nodes, read and removed."""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from controller import events, znodes
from controller.cluster import TopicPartition
from controller.context import ReplicaState
from controller.office import Office
from controller.zookeeper import NoNodeError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Notifications:
    """Changes of in-sync replicas that leaders have made, and log directories that have failed."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def begin(self) -> None:
        """Drop what is left of an earlier term (the cluster is read anew anyway), and watch."""
        self._office.watches.children(znodes.ISR_CHANGES, events.IsrChangesNotified())
        self._office.watches.children(znodes.LOG_DIR_EVENTS, events.LogDirEventsNotified())
        for folder in (znodes.ISR_CHANGES, znodes.LOG_DIR_EVENTS):
            await self._office.fenced.delete_nodes(await self._waiting(folder))

    async def on_isr_changes(self, _: events.IsrChangesNotified) -> None:
        """Learn the new states, and tell every broker of them."""
        paths = await self._waiting(znodes.ISR_CHANGES)
        changed: set[TopicPartition] = set()
        for partitions in await self._read(paths, znodes.decode_isr_change):
            changed |= partitions
        context = self._office.context
        known = sorted(one for one in changed if one.topic in context.assignments)
        context.leadership |= await self._office.store.partition_states(known)
        if known:
            self._office.update_metadata(context.brokers, known)
        await self._office.fenced.delete_nodes(paths)

    async def on_log_dir_events(self, _: events.LogDirEventsNotified) -> None:
        """Ask the brokers again for all of their replicas; their answers tell which are lost."""
        paths = await self._waiting(znodes.LOG_DIR_EVENTS)
        brokers = set(await self._read(paths, znodes.decode_log_dir_event))
        if brokers:
            logger.warning("log directories of brokers %s have failed", sorted(brokers))
            replicas = self._office.context.replicas_on(brokers & self._office.context.live_brokers)
            await self._office.replicas.move(replicas, ReplicaState.ONLINE)
        await self._office.fenced.delete_nodes(paths)

    async def _waiting(self, folder: str) -> list[str]:
        try:
            names = await self._office.store.client.children(folder)
        except NoNodeError:
            return []
        return [f"{folder}/{name}" for name in sorted(names)]

    async def _read(self, paths: list[str], decode: Callable[[str, bytes], T]) -> list[T]:
        """What the notices say; one that nobody can read is dropped like the others."""
        nodes = await asyncio.gather(*map(self._office.store.client.get, paths))
        notices = []
        for path, node in zip(paths, nodes, strict=True):
            try:
                notices.append(decode(path, node.data))
            except znodes.MalformedNodeError as error:
                logger.warning("Ignoring a notice that can't be read: %s", error)
        return notices
