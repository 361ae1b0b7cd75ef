"""acks=all with followers: the answer waits for the high watermark, for a leader, or for time."""

import asyncio
from pathlib import Path

from broker.delayed_produce import DelayedProduce, WaitingPartition
from broker.replica_manager import ReplicaManager
from network.protocol import ErrorCode
from network.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from tests.support.partitions import decision, make_replicas
from tests.support.raw_client import make_batch


def append_uncommitted(replicas: ReplicaManager) -> WaitingPartition:
    replicas.become_leader_or_follower("t", decision(isr=(0, 1)))
    replicas.append("t", 0, memoryview(bytearray(make_batch(b"x"))), acks=-1)
    return WaitingPartition(replicas.partitions["t", 0], 1, PartitionProduceResponse(index=0))


def test_is_answered_when_the_high_watermark_has_passed(tmp_path: Path) -> None:
    async def scenario() -> None:
        replicas = make_replicas(tmp_path)
        waiting = append_uncommitted(replicas)
        answered: list[ProduceResponse] = []
        operation = DelayedProduce(ProduceResponse(), [waiting])
        parked = replicas.delayed_produces.park(operation, [waiting.partition.key], 60)
        parked.when_done(lambda done: answered.append(done.result()))
        replicas.delayed_produces.check(("t", 0))
        assert answered == []
        waiting.partition.log.update_high_watermark(1)
        replicas.delayed_produces.check(("t", 0))
        assert answered == [ProduceResponse()]
        assert waiting.response.error_code == ErrorCode.NONE

    asyncio.run(scenario())


def test_lost_leadership_is_told(tmp_path: Path) -> None:
    replicas = make_replicas(tmp_path)
    waiting = append_uncommitted(replicas)
    operation = DelayedProduce(ProduceResponse(), [waiting])
    assert operation.try_result() is None
    replicas.become_leader_or_follower("t", decision(leader=1, epoch=1, isr=(1, 0)))
    assert operation.try_result() is not None
    assert waiting.response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_time_out_is_told(tmp_path: Path) -> None:
    waiting = append_uncommitted(make_replicas(tmp_path))
    DelayedProduce(ProduceResponse(), [waiting]).expired_result()
    assert waiting.response.error_code == ErrorCode.REQUEST_TIMED_OUT
