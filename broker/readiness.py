"""When a broker is ready: the controller has spoken, and all that is led here is really led."""

import asyncio

from broker.metadata_cache import MetadataCache
from broker.replica_manager import ReplicaManager


def is_ready(metadata: MetadataCache, replicas: ReplicaManager, broker_id: int) -> bool:
    """True once this broker knows itself in the cluster and leads what the cluster says it does."""
    if broker_id not in metadata.brokers:
        return False
    return all(
        (topic, index) in replicas.partitions and replicas.partitions[topic, index].is_leader
        for topic in metadata.topics
        for index, state in (metadata.partitions(topic) or {}).items()
        if state.leader == broker_id
    )


async def wait_until_ready(
    metadata: MetadataCache, replicas: ReplicaManager, broker_id: int
) -> None:
    updated = asyncio.Event()
    metadata.on_updated(updated.set)
    while not is_ready(metadata, replicas, broker_id):
        updated.clear()
        await updated.wait()
