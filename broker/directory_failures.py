"""A log directory has failed and others are left: the controller finds other leaders."""

import asyncio
import logging

from broker.replica_manager import ReplicaManager
from controller.metadata_store import MetadataStore
from controller.zookeeper import ZooKeeperError

logger = logging.getLogger(__name__)


class DirectoryFailures:
    """Tells the controller, which then asks this broker for what it has lost."""

    def __init__(self, broker_id: int, replicas: ReplicaManager, store: MetadataStore) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._store = store
        self._telling: set[asyncio.Task[None]] = set()

    def announce(self) -> None:
        self._replicas.log_directory_failed()
        task = asyncio.create_task(self._tell(), name="log-directory-failure")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self) -> None:
        try:
            await self._store.announce_failed_log_directory(self._broker_id)
        except ZooKeeperError as error:  # a new session makes the controller ask anyway
            logger.warning("The controller was not told of the log directory: %s", error)
