"""Consumer groups: what a large rebalance does to others, and what heartbeats cost.

    python -m benchmarks.groups [--members 500] [--idle 5000]

A group of hundreds of members rebalances again and again while another connection, in a process
of its own, produces one record at a time: its latencies then stand beside those without a
rebalance. Then thousands of members send heartbeats as clients do, every three seconds, and the
broker's CPU time stands beside the bar of a tenth of a core.
"""

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import psutil

from network.client import BrokerConnection
from network.protocol import ErrorCode
from network.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from network.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from network.protocol.messages.heartbeat import HeartbeatRequest
from network.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from network.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from network.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from network.protocol.schema import Request
from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import make_batch

TOPIC = "traffic"
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x07traffic\xff\xff\xff\xff\x00\x00\x00\x00"
HEARTBEAT_SECONDS = 3.0
MEASURED_SECONDS = 15.0
PHASE_SECONDS = 6.0
PAUSE_SECONDS = 0.002
CORES_ALLOWED = 0.1


class Member:
    """One member, with a connection of its own."""

    def __init__(self, port: int, group: str) -> None:
        self._connection = BrokerConnection("127.0.0.1", port, "member")
        self._group = group
        self.member_id = ""
        self.generation = -1
        self._round = 0

    async def connect(self) -> None:
        await self._connection.connect()

    async def close(self) -> None:
        await self._connection.close()

    async def rebalance(self) -> None:
        """Join with a new subscription, which calls for a rebalance, and sync."""
        self._round += 1
        while True:
            joined = await self._join()
            if joined.error_code == ErrorCode.NONE:
                self.generation = joined.generation_id
                request = SyncGroupRequest(
                    group_id=self._group,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    assignments=[
                        SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"x" * 40)
                        for one in joined.members
                    ],
                )
                if (await self._ask(request, 3)).error_code == ErrorCode.NONE:
                    return

    async def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self._group, generation_id=self.generation, member_id=self.member_id
        )
        code: int = (await self._ask(request, 4)).error_code
        return code

    async def _join(self) -> JoinGroupResponse:
        metadata = SUBSCRIPTION + self._round.to_bytes(4)
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        response: JoinGroupResponse = await self._ask(request, 5)
        unknown = response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        self.member_id = "" if unknown else response.member_id
        return response

    async def _ask(self, request: Request, version: int) -> Any:
        return await self._connection.ask(request, version)


def probe(port: int, control: Connection) -> None:
    """Produce one record at a time; the latencies since the last question, when asked."""
    asyncio.run(_probe(port, control))


async def _probe(port: int, control: Connection) -> None:
    batch = make_batch(b"x" * 100)
    latencies: list[float] = []
    async with BrokerConnection("127.0.0.1", port, "probe") as connection:
        while True:
            data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
            request = ProduceRequest(
                acks=1, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
            )
            begun = time.perf_counter()
            await connection.ask(request, 8)
            latencies.append(time.perf_counter() - begun)
            if control.poll():
                if control.recv() == "end":
                    return
                control.send(latencies)
                latencies = []
            await asyncio.sleep(PAUSE_SECONDS)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def report(name: str, latencies: Sequence[float]) -> None:
    figures = [statistics.median(latencies), percentile(latencies, 0.99), max(latencies)]
    shown = "  ".join(
        f"{label} {1000 * value:7.2f} ms"
        for label, value in zip(("p50", "p99", "max"), figures, strict=True)
    )
    print(f"{name:<28} {len(latencies):6d} produces  {shown}")


async def prepare(port: int) -> None:
    async with BrokerConnection("127.0.0.1", port, "setup") as connection:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        await connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 4)
        while True:
            found = await connection.ask(FindCoordinatorRequest(key="crowd"), 1)
            if cast("FindCoordinatorResponse", found).error_code == ErrorCode.NONE:
                return
            await asyncio.sleep(0.05)


async def connected(port: int, group: str, count: int) -> list[Member]:
    members = [Member(port, group) for _ in range(count)]
    for start in range(0, count, 100):
        await asyncio.gather(*(one.connect() for one in members[start : start + 100]))
    return members


async def rebalance_under_load(port: int, count: int, control: Connection) -> None:
    members = await connected(port, "crowd", count)
    await asyncio.gather(*(one.rebalance() for one in members))
    control.send("report")
    control.recv()
    await asyncio.sleep(PHASE_SECONDS)
    control.send("report")
    quiet = control.recv()
    took: list[float] = []
    begun = time.perf_counter()
    while time.perf_counter() - begun < PHASE_SECONDS:
        start = time.perf_counter()
        await asyncio.gather(*(one.rebalance() for one in members))
        took.append(time.perf_counter() - start)
    control.send("report")
    busy = control.recv()
    report("without a rebalance", quiet)
    report(f"{count} members rebalancing", busy)
    ratio = percentile(busy, 0.99) / percentile(quiet, 0.99)
    print(
        f"p99 with / without: {ratio:.2f}; a rebalance took {statistics.median(took):.2f} s"
        f" (the {count} clients are one Python process), {len(took)} of them"
    )
    for member in members:
        await member.close()


async def heartbeats(broker: BrokerProcess, count: int) -> None:
    members: list[Member] = []
    for number in range(count // 100):
        group = await connected(broker.port, f"idle-{number}", 100)
        await asyncio.gather(*(one.rebalance() for one in group))
        members += group
    process = psutil.Process(broker.pid)
    end = asyncio.get_running_loop().time() + MEASURED_SECONDS
    refused = 0

    async def live(member: Member, delay: float) -> int:
        nonlocal refused
        await asyncio.sleep(delay)
        beats = 0
        while asyncio.get_running_loop().time() < end:
            refused += await member.heartbeat() != ErrorCode.NONE
            beats += 1
            await asyncio.sleep(HEARTBEAT_SECONDS)
        return beats

    before, begun = _cpu_seconds(process), time.perf_counter()
    end = asyncio.get_running_loop().time() + MEASURED_SECONDS
    beats = await asyncio.gather(
        *(live(one, HEARTBEAT_SECONDS * n / count) for n, one in enumerate(members))
    )
    elapsed = time.perf_counter() - begun
    cores = (_cpu_seconds(process) - before) / elapsed
    total = sum(beats)
    print(
        f"{count} members: {total / elapsed:.0f} heartbeats/s cost {cores:.3f} cores"
        f" ({1e6 * cores * elapsed / total:.0f} us each);"
        f" {cores / CORES_ALLOWED:.2f} of the tenth of a core; refused {refused}"
    )
    for member in members:
        await member.close()


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=500)
    parser.add_argument("--idle", type=int, default=5000)
    arguments = parser.parse_args()
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with (
        tempfile.TemporaryDirectory() as directory,
        running_broker(Path(directory) / "data", settings) as broker,
    ):
        asyncio.run(prepare(broker.port))
        ours, theirs = multiprocessing.Pipe()
        prober = multiprocessing.get_context("spawn").Process(
            target=probe, args=(broker.port, theirs), daemon=True
        )
        prober.start()
        asyncio.run(rebalance_under_load(broker.port, arguments.members, ours))
        ours.send("end")
        prober.join()
        asyncio.run(heartbeats(broker, arguments.idle))


if __name__ == "__main__":
    main()
