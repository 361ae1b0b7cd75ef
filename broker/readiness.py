"""When a broker is ready: the controller has spoken, and all that is led here is really led."""

import asyncio
import logging
from collections.abc import Collection

from broker.metadata_cache import MetadataCache
from broker.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 10.0


def is_ready(
    metadata: MetadataCache, replicas: ReplicaManager, broker_id: int, topics: Collection[str] = ()
) -> bool:
    """True once this broker knows itself and the topics in the cluster, and leads what the cluster
    says it does. A new controller first speaks of brokers alone."""
    if broker_id not in metadata.brokers or not all(topic in metadata for topic in topics):
        return False
    return all(
        (topic, index) in replicas.partitions and replicas.partitions[topic, index].is_leader
        for topic in metadata.topics
        for index, state in (metadata.partitions(topic) or {}).items()
        if state.leader == broker_id
    )


async def wait_until_ready(
    metadata: MetadataCache, replicas: ReplicaManager, broker_id: int, topics: Collection[str]
) -> None:
    """Wait for all, also for `topics`, whose logs are here; but not for ever for those, which may
    have nobody to lead them."""
    updated = asyncio.Event()
    metadata.on_updated(updated.set)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not is_ready(metadata, replicas, broker_id, topics):
        updated.clear()
        try:
            async with asyncio.timeout_at(deadline if topics else None):
                await updated.wait()
        except TimeoutError:
            logger.warning("The controller has not told of all topics whose logs are here")
            topics = ()
