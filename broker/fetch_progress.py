"""How far a waiting fetch has come, told without reading again what has not changed.

A fetch of many partitions that waits for many bytes is checked at every append to any of them. A
look at each partition's offsets costs a fraction of a read; only those that moved are read.
"""

from collections.abc import Sequence

from broker.partition import Leadership, Partition
from broker.replica_manager import FetchParameters, FetchSpec, PartitionRead, ReplicaManager
from storage.log import ReadIsolation


class FetchProgress:
    """What the partitions of one fetch had to give when they were last read."""

    def __init__(
        self, replicas: ReplicaManager, fetch: FetchParameters, reads: Sequence[PartitionRead]
    ) -> None:
        """`reads` went well, all of them, and were not enough."""
        self._replicas = replicas
        self._fetch = fetch
        self._parts = [_Part(read, replicas, fetch.isolation) for read in reads]

    def may_suffice(self) -> bool:
        """False while another read cannot have enough, nor an error to tell."""
        available = 0
        for part in self._parts:
            if part.has_changed_hands(self._replicas):
                return True
            end = visible_end(part.partition, self._fetch.isolation)
            if end != part.end:
                part.end = end
                (read,) = self._replicas.read(self._fetch, [part.spec])
                if read.data is None:
                    return True
                part.available = len(read.data.slice)
            available += part.available
        return available >= self._fetch.min_bytes


class _Part:
    """One partition, as it was when last read."""

    __slots__ = ("available", "end", "leadership", "partition", "spec")

    def __init__(
        self, read: PartitionRead, replicas: ReplicaManager, isolation: ReadIsolation
    ) -> None:
        assert read.data is not None
        self.spec: FetchSpec = read.spec
        self.partition: Partition = replicas.partitions[read.spec.topic, read.spec.partition]
        self.leadership: Leadership = self.partition.leadership
        self.end = visible_end(self.partition, isolation)
        self.available = len(read.data.slice)

    def has_changed_hands(self, replicas: ReplicaManager) -> bool:
        """Led elsewhere, deleted, fenced, or without its disk: a read will tell."""
        partition = self.partition
        return (
            partition.leadership is not self.leadership
            or not partition.is_leader
            or partition.log.is_offline
            or replicas.partitions.get((self.spec.topic, self.spec.partition)) is not partition
        )


def visible_end(partition: Partition, isolation: ReadIsolation) -> int:
    """The offset before which a reader may see everything."""
    if isolation is ReadIsolation.HIGH_WATERMARK:
        return partition.log.high_watermark
    if isolation is ReadIsolation.COMMITTED:
        return partition.log.last_stable_offset
    return partition.log.end_offset
