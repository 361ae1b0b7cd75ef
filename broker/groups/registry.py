"""The groups that this broker coordinates, by the partitions of `__consumer_offsets` it leads.

Owns which partitions are here, which are still being loaded, and the loading itself: files are
read in a thread, records are taken in on the loop, a slice at a time.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from broker.groups.group import Group
from broker.groups.loading import GroupLoader
from broker.groups.partitions import partition_for
from broker.replica_manager import ReplicaManager
from broker.topic_names import GROUP_METADATA_TOPIC
from network.protocol import ErrorCode
from storage.append_info import ReadIsolation
from storage.log import Log
from storage.records import iter_batches

logger = logging.getLogger(__name__)

SLICE_SECONDS: Final = 0.002


class GroupRegistry:
    """Groups by id."""

    def __init__(
        self,
        replicas: ReplicaManager,
        partitions: int,
        load_buffer_bytes: int,
        now_ms: Callable[[], int],
        on_loaded: Callable[[Group], None],
        on_unloaded: Callable[[Group], None],
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.partitions = partitions
        self._replicas = replicas
        self._load_buffer_bytes = load_buffer_bytes
        self._now_ms = now_ms
        self._on_loaded = on_loaded
        self._on_unloaded = on_unloaded
        self._owned: set[int] = set()
        # In the order in which they are loaded, one at a time: slices of all would add up.
        self._loading: dict[int, _Load] = {}
        self._loader: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self.groups.values()))

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def partition_for(self, group_id: str) -> int:
        return partition_for(group_id, self.partitions)

    def check(self, group_id: str) -> ErrorCode:
        """Whether this broker can speak for a group now."""
        partition = self.partition_for(group_id)
        if partition in self._owned:
            return ErrorCode.NONE
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def add(self, group_id: str) -> Group:
        """A group that nobody has heard of yet."""
        group = self.groups[group_id] = Group(group_id, state_timestamp=self._now_ms())
        return group

    def remove(self, group: Group) -> None:
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    def elected(self, partition: int) -> None:
        """This broker leads a partition: take in what it says."""
        if partition in self._loading or partition in self._owned:
            return
        log = self._replicas.partitions[GROUP_METADATA_TOPIC, partition].log
        if log.start_offset == log.end_offset:
            self._owned.add(partition)
            return
        self._loading[partition] = _Load(partition, log)
        if self._loader is None:
            self._loader = asyncio.get_running_loop().create_task(self._load_waiting())

    def resigned(self, partition: int) -> None:
        """Another broker leads it, or nobody does: its groups are no longer ours."""
        self._loading.pop(partition, None)
        self._owned.discard(partition)
        for group in self:
            if self.partition_for(group.group_id) == partition:
                self._on_unloaded(group)
                self.remove(group)

    async def stop(self) -> None:
        for partition in {*self._owned, *self._loading}:
            self.resigned(partition)
        if self._loader is not None:
            self._loader.cancel()
            await asyncio.gather(self._loader, return_exceptions=True)

    async def _load_waiting(self) -> None:
        while self._loading:
            load = next(iter(self._loading.values()))
            try:
                await self._read(load)
            except Exception:
                # What was read is better than nothing: behind it, groups only read twice.
                logger.exception("Cannot read all of %s", load)
            if self._is_wanted(load):
                self._finish(load)
        self._loader = None

    async def _read(self, load: "_Load") -> None:
        """All batches up to the end that the log has by then."""
        logger.info("Loading offsets and group metadata from %s", load)
        log, offset = load.log, load.log.start_offset
        while offset < log.end_offset and self._is_wanted(load):
            found = log.read(offset, self._load_buffer_bytes, ReadIsolation.LOG_END).slice
            if not len(found):
                return
            data = await asyncio.to_thread(found.read)
            slice_end = time.perf_counter() + SLICE_SECONDS
            for batch in iter_batches(data):
                load.loader.take(batch)
                offset = batch.header.next_offset
                if time.perf_counter() >= slice_end:
                    await asyncio.sleep(0)
                    slice_end = time.perf_counter() + SLICE_SECONDS

    def _is_wanted(self, load: "_Load") -> bool:
        """Leadership may have gone, or gone and come back, while a file was read."""
        return self._loading.get(load.partition) is load

    def _finish(self, load: "_Load") -> None:
        for group in load.loader.groups(self._now_ms()):
            self.groups[group.group_id] = group
            self._on_loaded(group)
        del self._loading[load.partition]
        self._owned.add(load.partition)
        elapsed = (time.monotonic() - load.started) * 1000
        logger.info("Finished loading offsets and group metadata from %s in %d ms", load, elapsed)


@dataclass(slots=True, eq=False)
class _Load:
    """A partition that is being taken in."""

    partition: int
    log: Log
    started: float = field(default_factory=time.monotonic)
    loader: GroupLoader = field(default_factory=GroupLoader)

    def __str__(self) -> str:
        return f"{GROUP_METADATA_TOPIC}-{self.partition}"
