"""A waiting fetch is asked at every append: it looks at offsets, and reads only what moved."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from broker.fetch_progress import FetchProgress
from broker.replica_manager import FetchParameters, FetchSpec, PartitionRead, ReplicaManager
from storage.log import ReadIsolation
from tests.support.partitions import decision, make_replicas
from tests.support.raw_client import make_batch

PARTITIONS = 5
BATCH_BYTES = len(make_batch(b"x" * 100))


class CountedReads:
    """Notes which partitions are read, and reads them."""

    def __init__(self, replicas: ReplicaManager) -> None:
        self.partitions: list[int] = []
        self._read = replicas.read

    def __call__(
        self, fetch: FetchParameters, specs: Sequence[FetchSpec] | None = None
    ) -> list[PartitionRead]:
        self.partitions += [spec.partition for spec in specs or fetch.partitions]
        return self._read(fetch, specs)


@pytest.fixture
def replicas(tmp_path: Path) -> ReplicaManager:
    replicas = make_replicas(tmp_path)
    for partition in range(PARTITIONS):
        replicas.become_leader_or_follower("t", decision(partition=partition))
    return replicas


def append(replicas: ReplicaManager, partition: int) -> None:
    replicas.append("t", partition, memoryview(bytearray(make_batch(b"x" * 100))), acks=1)


def waiting(
    replicas: ReplicaManager, min_bytes: int, isolation: ReadIsolation
) -> tuple[FetchProgress, CountedReads]:
    specs = [FetchSpec("t", partition, 0, 1 << 20, -1) for partition in range(PARTITIONS)]
    fetch = FetchParameters(-1, min_bytes, 1 << 20, isolation, specs)
    progress = FetchProgress(replicas, fetch, replicas.read(fetch))
    counted = CountedReads(replicas)
    replicas.read = counted  # type: ignore[method-assign]
    return progress, counted


@pytest.mark.parametrize("isolation", ReadIsolation)
def test_suffices_when_all_partitions_together_have_enough(
    replicas: ReplicaManager, isolation: ReadIsolation
) -> None:
    append(replicas, 4)
    progress, reads = waiting(replicas, 3 * BATCH_BYTES, isolation)
    assert not progress.may_suffice()
    assert reads.partitions == []
    append(replicas, 1)
    assert not progress.may_suffice()
    assert not progress.may_suffice()
    append(replicas, 2)
    assert progress.may_suffice()
    assert reads.partitions == [1, 2]


def test_what_others_have_not_copied_yet_does_not_count(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    for partition in range(PARTITIONS):
        replicas.become_leader_or_follower("t", decision(partition=partition, isr=(0, 1)))
    progress, _ = waiting(replicas, BATCH_BYTES, ReadIsolation.HIGH_WATERMARK)
    append(replicas, 0)
    assert not progress.may_suffice()
    replicas.partitions["t", 0].log.update_high_watermark(1)
    assert progress.may_suffice()


def test_bytes_that_were_there_before_but_not_visible_count_when_they_are(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    for partition in range(PARTITIONS):
        replicas.become_leader_or_follower("t", decision(partition=partition, isr=(0, 1)))
    append(replicas, 3)
    progress, _ = waiting(replicas, BATCH_BYTES, ReadIsolation.HIGH_WATERMARK)
    assert not progress.may_suffice()
    replicas.partitions["t", 3].log.update_high_watermark(1)
    assert progress.may_suffice()


def test_partition_that_changed_hands_is_left_to_a_read(replicas: ReplicaManager) -> None:
    progress, _ = waiting(replicas, BATCH_BYTES, ReadIsolation.HIGH_WATERMARK)
    assert not progress.may_suffice()
    replicas.become_leader_or_follower("t", decision(partition=2, epoch=1))
    assert progress.may_suffice()


def test_deleted_partition_is_left_to_a_read(replicas: ReplicaManager) -> None:
    progress, _ = waiting(replicas, BATCH_BYTES, ReadIsolation.HIGH_WATERMARK)
    replicas.stop("t", 3, delete=True)
    assert progress.may_suffice()
