"""What this broker knows of the cluster: live brokers, the controller, every partition's state.

It is fed by UpdateMetadata alone and answers Metadata; it never asks ZooKeeper.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from network.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)

NO_LEADER = -1
LEADER_DURING_DELETE = -2
LISTENER_OF_SECURITY_PROTOCOL = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


@dataclass(frozen=True, slots=True)
class Node:
    """A broker as seen through one listener."""

    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A broker that is registered, with an endpoint per listener."""

    id: int
    rack: str | None
    endpoints: dict[str, tuple[str, int]]

    def node(self, listener_name: str) -> Node | None:
        endpoint = self.endpoints.get(listener_name)
        if endpoint is None:
            return None
        return Node(self.id, endpoint[0], endpoint[1], self.rack)


class MetadataCache:
    """The cluster as the controller last described it."""

    def __init__(self) -> None:
        self.controller_id = -1
        self.brokers: dict[int, LiveBroker] = {}
        self._topics: dict[str, dict[int, UpdateMetadataPartitionState]] = {}
        self._on_topic_changed: list[Callable[[str], None]] = []
        self._on_updated: list[Callable[[], None]] = []

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    @property
    def topics(self) -> list[str]:
        return list(self._topics)

    def partitions(self, topic: str) -> dict[int, UpdateMetadataPartitionState] | None:
        return self._topics.get(topic)

    def has_partition(self, topic: str, partition: int) -> bool:
        partitions = self._topics.get(topic)
        return partitions is not None and partition in partitions

    def all_partitions(self) -> Iterator[tuple[str, int]]:
        for topic, partitions in self._topics.items():
            for partition in partitions:
                yield topic, partition

    def leader(self, topic: str, partition: int) -> int:
        """The broker that leads a partition, or NO_LEADER."""
        state = self._topics.get(topic, {}).get(partition)
        return NO_LEADER if state is None else state.leader

    def has_leaders(self, topic: str, partitions: Iterable[int]) -> bool:
        """Whether each of the partitions is there and has a leader."""
        return all(self.leader(topic, partition) != NO_LEADER for partition in partitions)

    def node(self, broker_id: int, listener_name: str) -> Node | None:
        broker = self.brokers.get(broker_id)
        return None if broker is None else broker.node(listener_name)

    def live_nodes(self, listener_name: str) -> list[Node]:
        nodes = (broker.node(listener_name) for broker in self.brokers.values())
        return [node for node in nodes if node is not None]

    def on_topic_changed(self, callback: Callable[[str], None]) -> None:
        """Be called with the name of each topic whose partitions an update has touched."""
        self._on_topic_changed.append(callback)

    def on_updated(self, callback: Callable[[], None]) -> None:
        """Be called after each update."""
        self._on_updated.append(callback)

    def update(self, request: UpdateMetadataRequest) -> list[tuple[str, int]]:
        """Take an update in; returns the partitions that it says are being deleted."""
        self.controller_id = max(request.controller_id, -1)
        self.brokers = {broker.id: _live_broker(broker) for broker in request.live_brokers}
        deleted: list[tuple[str, int]] = []
        changed: dict[str, None] = {}
        for topic, state in _partition_states(request):
            changed[topic] = None
            if state.leader == LEADER_DURING_DELETE:
                deleted.append((topic, state.partition_index))
                self._remove(topic, state.partition_index)
            else:
                self._topics.setdefault(topic, {})[state.partition_index] = state
        for topic in changed:
            for callback in self._on_topic_changed:
                callback(topic)
        for updated in self._on_updated:
            updated()
        return deleted

    def _remove(self, topic: str, partition: int) -> None:
        partitions = self._topics.get(topic)
        if partitions is not None:
            partitions.pop(partition, None)
            if not partitions:
                del self._topics[topic]


def _partition_states(
    request: UpdateMetadataRequest,
) -> Iterator[tuple[str, UpdateMetadataPartitionState]]:
    for state in request.ungrouped_partition_states:
        yield state.topic_name, state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, state


def _live_broker(broker: UpdateMetadataBroker) -> LiveBroker:
    endpoints = {
        endpoint.listener or LISTENER_OF_SECURITY_PROTOCOL[endpoint.security_protocol]: (
            endpoint.host,
            endpoint.port,
        )
        for endpoint in broker.endpoints
    }
    if not endpoints:
        endpoints["PLAINTEXT"] = (broker.v0_host, broker.v0_port)
    return LiveBroker(broker.id, broker.rack or None, endpoints)
