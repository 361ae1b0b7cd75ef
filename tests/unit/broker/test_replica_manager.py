"""Leadership, appends and reads of partitions on real logs."""

from pathlib import Path

import pytest

from broker.failures import ApiError
from broker.replica_manager import FetchParameters, FetchSpec, ReplicaManager
from network.protocol import ErrorCode
from storage.log import ReadIsolation
from storage.log_config import LogConfig
from tests.support.partitions import decision, make_replicas
from tests.support.raw_client import make_batch


def batch(*values: bytes) -> memoryview:
    return memoryview(bytearray(make_batch(*values)))


def lead(manager: ReplicaManager, topic: str = "t", **what: object) -> ErrorCode:
    return manager.become_leader_or_follower(topic, decision(**what))  # type: ignore[arg-type]


def spec(offset: int, *, topic: str = "t", max_bytes: int = 1 << 20, epoch: int = -1) -> FetchSpec:
    return FetchSpec(topic, 0, offset, max_bytes, epoch)


def fetch(*specs: FetchSpec, max_bytes: int = 1 << 20, hard: bool = False) -> FetchParameters:
    return FetchParameters(-1, 1, max_bytes, ReadIsolation.HIGH_WATERMARK, specs, hard)


def test_decisions_are_taken_in_the_order_of_leader_epochs(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    assert lead(replicas, epoch=3) == ErrorCode.NONE
    assert lead(replicas, epoch=3) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert lead(replicas, epoch=2) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert lead(replicas, epoch=4) == ErrorCode.NONE
    assert replicas.partitions["t", 0].leadership.leader_epoch == 4


def test_partition_of_others_is_not_taken(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    code = lead(replicas, leader=1, isr=(1,), replicas=(1, 2))
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replicas.partitions == {}


def test_follower_sends_clients_away(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    lead(replicas, leader=1, isr=(1, 0))
    with pytest.raises(ApiError) as refused:
        replicas.append("t", 0, batch(b"x"), acks=1)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    (read,) = replicas.read(fetch(spec(0)))
    assert read.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_alone_in_the_isr_what_is_written_is_committed(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    lead(replicas)
    replicas.append("t", 0, batch(b"a", b"b"), acks=-1)
    assert replicas.partitions["t", 0].log.high_watermark == 2


def test_with_followers_in_the_isr_it_is_not_yet(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    lead(replicas, isr=(0, 1))
    replicas.append("t", 0, batch(b"a"), acks=1)
    assert replicas.partitions["t", 0].log.high_watermark == 0
    (read,) = replicas.read(fetch(spec(0)))
    assert read.data is not None
    assert len(read.data.slice) == 0


def test_acks_all_needs_min_insync_replicas(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path, LogConfig(min_insync_replicas=2))
    lead(replicas)
    with pytest.raises(ApiError) as refused:
        replicas.append("t", 0, batch(b"x"), acks=-1)
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    replicas.append("t", 0, batch(b"x"), acks=1)
    assert replicas.partitions["t", 0].log.end_offset == 1


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, ErrorCode.NONE),
        (5, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_reader_of_another_leader_epoch_is_refused(
    tmp_path: Path, epoch: int, code: ErrorCode
) -> None:
    replicas = make_replicas(tmp_path)
    lead(replicas, epoch=5)
    (read,) = replicas.read(fetch(spec(0, epoch=epoch)))
    assert read.error == code


def test_limits_hold_over_partitions_after_the_first_batch(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    for topic in ("a", "b"):
        lead(replicas, topic)
        for _ in range(3):
            replicas.append(topic, 0, batch(b"x" * 500), acks=1)
    size = len(make_batch(b"x" * 500))
    first, second = replicas.read(fetch(spec(0, topic="a"), spec(0, topic="b"), max_bytes=1))
    assert first.data is not None
    assert second.data is not None
    assert (len(first.data.slice), len(second.data.slice)) == (size, 0)
    hard = replicas.read(fetch(spec(0, topic="a", max_bytes=100), hard=True))[0]
    assert hard.data is not None
    assert len(hard.data.slice) == 100


def test_stopped_partition_is_let_go_and_its_log_deleted(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    lead(replicas)
    replicas.append("t", 0, batch(b"x"), acks=1)
    assert replicas.stop("t", 0, delete=False) == ErrorCode.NONE
    with pytest.raises(ApiError):
        replicas.leader("t", 0)
    assert (tmp_path / "t-0").exists()
    assert replicas.stop("t", 0, delete=True) == ErrorCode.NONE
    assert not (tmp_path / "t-0").exists()
    assert replicas.stop("t", 0, delete=True) == ErrorCode.NONE
