"""Offsets of clients from before `__consumer_offsets`: version 0 keeps them in ZooKeeper."""

import logging

from broker.groups.offsets import CommittedOffset, TopicPartition
from controller import cluster
from controller.metadata_store import MetadataStore
from controller.znodes import MalformedNodeError
from controller.zookeeper import ZooKeeperError
from network.protocol import ErrorCode

logger = logging.getLogger(__name__)


class ZooKeeperOffsets:
    """What lies under /consumers."""

    def __init__(self, store: MetadataStore, max_metadata_length: int) -> None:
        self._store = store
        self._max_metadata_length = max_metadata_length

    async def commit(
        self, group_id: str, partition: TopicPartition, offset: int, metadata: str | None
    ) -> ErrorCode:
        """Metadata is measured, but there is no place for it."""
        if len(metadata or "") > self._max_metadata_length:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        try:
            await self._store.set_consumer_offset(
                group_id, cluster.TopicPartition(*partition), offset
            )
        except ZooKeeperError as error:
            logger.warning("Cannot commit for %s to ZooKeeper: %s", group_id, error)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    async def fetch(self, group_id: str, partition: TopicPartition) -> CommittedOffset | ErrorCode:
        try:
            offset = await self._store.consumer_offset(group_id, cluster.TopicPartition(*partition))
        except (ZooKeeperError, MalformedNodeError) as error:
            logger.warning("Cannot read an offset of %s in ZooKeeper: %s", group_id, error)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if offset is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return CommittedOffset(offset)
