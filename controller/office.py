"""What the active controller's parts share for one term of office."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller import events
from controller.cluster import TopicPartition
from controller.context import ControllerContext
from controller.fenced_store import FencedStore
from controller.metadata_store import MetadataStore
from controller.partition_states import PartitionStateMachine
from controller.replica_states import ReplicaStateMachine
from controller.request_batch import Enqueue, RequestBatch
from controller.zookeeper import ZooKeeperClient


class Watches:
    """Turns changes in ZooKeeper into events, until the term ends."""

    def __init__(self, client: ZooKeeperClient, enqueue: Enqueue) -> None:
        self._client = client
        self._enqueue = enqueue
        self._paths: set[str] = set()

    def children(self, path: str, event: events.Event) -> None:
        self._paths.add(path)
        self._client.watch_children(path, lambda: self._enqueue(event))

    def node(self, path: str, event: events.Event) -> None:
        self._paths.add(path)
        self._client.watch_node(path, lambda: self._enqueue(event))

    def remove(self, path: str) -> None:
        self._paths.discard(path)
        self._client.unwatch(path)

    def clear(self) -> None:
        for path in list(self._paths):
            self.remove(path)


@dataclass(frozen=True, slots=True)
class Office:
    context: ControllerContext
    store: MetadataStore
    fenced: FencedStore
    batch: RequestBatch
    partitions: PartitionStateMachine
    replicas: ReplicaStateMachine
    watches: Watches
    enqueue: Enqueue

    def update_metadata(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Tell brokers who is alive, and of the given partitions."""
        self.batch.add_update_metadata(brokers, partitions)
        self.batch.send()
