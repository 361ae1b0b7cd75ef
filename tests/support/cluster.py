"""A cluster of controllers on one ZooKeeper whose brokers are simple stand-ins.

Each broker takes the controller's requests in, keeps what they say as a broker would, and answers
that all is well. Everything else is real.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from controller.cluster import BrokerInfo, Endpoint, LeaderAndIsr, TopicPartition
from controller.controller import Controller
from controller.metadata_store import MetadataStore
from controller.term import ControllerOptions
from controller.zookeeper import ZooKeeperClient
from network.protocol.errors import ErrorCode
from network.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from network.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from network.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from network.protocol.schema import Request, Response

WAIT_SECONDS = 30.0


@dataclass
class StandInBroker:
    """What a broker has been told."""

    info: BrokerInfo
    requests: list[Request] = field(default_factory=list)
    replicas: dict[TopicPartition, LeaderAndIsrPartitionState] = field(default_factory=dict)
    metadata: dict[TopicPartition, UpdateMetadataPartitionState] = field(default_factory=dict)
    live_brokers: set[int] = field(default_factory=set)
    controller_id: int = -1
    failed_disk: set[TopicPartition] = field(default_factory=set)
    undeletable: set[TopicPartition] = field(default_factory=set)
    is_reachable: bool = True

    def answer(self, request: Request) -> Response:
        if not self.is_reachable:
            raise ConnectionRefusedError(f"broker {self.info.id} is not there")
        self.requests.append(request)
        match request:
            case LeaderAndIsrRequest():
                return self._lead_and_follow(request)
            case UpdateMetadataRequest():
                self._update(request)
                return UpdateMetadataResponse()
            case StopReplicaRequest():
                return self._stop(request)
        raise AssertionError(request)

    def _lead_and_follow(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        errors = []
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                failed = partition in self.failed_disk
                if not failed:
                    self.replicas[partition] = state
                errors.append(
                    LeaderAndIsrPartitionError(
                        topic_name=partition.topic,
                        partition_index=partition.partition,
                        error_code=ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE,
                    )
                )
        return LeaderAndIsrResponse(partition_errors=errors)

    def _update(self, request: UpdateMetadataRequest) -> None:
        self.controller_id = request.controller_id
        self.live_brokers = {broker.id for broker in request.live_brokers}
        for topic in request.topic_states:
            for state in topic.partition_states:
                self.metadata[TopicPartition(topic.topic_name, state.partition_index)] = state

    def _stop(self, request: StopReplicaRequest) -> StopReplicaResponse:
        errors = []
        for topic in request.topics:
            for number in topic.partition_indexes:
                partition = TopicPartition(topic.name, number)
                failed = request.delete_partitions and partition in self.undeletable
                if not failed:
                    self.replicas.pop(partition, None)
                errors.append(
                    StopReplicaPartitionError(
                        topic_name=topic.name,
                        partition_index=number,
                        error_code=ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE,
                    )
                )
        return StopReplicaResponse(partition_errors=errors)


class StandInCluster:
    """Brokers that come and go around one ZooKeeper."""

    def __init__(self, connect: str, **options: Any) -> None:
        self._connect = connect
        self._options = ControllerOptions(**options)
        self._clients: dict[int, ZooKeeperClient] = {}
        self.brokers: dict[int, StandInBroker] = {}
        self.controllers: dict[int, Controller] = {}

    async def __aenter__(self) -> "StandInCluster":
        client = ZooKeeperClient(self._connect)
        await client.connect()
        self._clients[-1] = client
        self.store = MetadataStore(client)
        await self.store.create_top_level_paths()
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in list(self.controllers):
            await self.stop(broker)
        await self._clients.pop(-1).close()

    async def start(
        self, broker_id: int, *, connect: str | None = None, **client_options: Any
    ) -> Controller:
        client = ZooKeeperClient(connect or self._connect, **client_options)
        await client.connect()
        store = MetadataStore(client)
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9000 + broker_id)
        info = BrokerInfo(broker_id, (endpoint,))
        info = info.with_epoch(await store.register_broker(info))
        self._clients[broker_id] = client
        self.brokers[broker_id] = StandInBroker(info)
        controller = Controller(
            store,
            info,
            self._send,
            options=self._options,
            known_brokers=lambda: self.brokers[broker_id].live_brokers,
        )
        self.controllers[broker_id] = controller
        await controller.start()
        return controller

    async def stop(self, broker_id: int) -> None:
        await self.controllers.pop(broker_id).stop()
        await self._clients.pop(broker_id).close()

    async def _send(self, broker: BrokerInfo, request: Request) -> Response:
        await asyncio.sleep(0)
        return self.brokers[broker.id].answer(request)

    @property
    def active(self) -> list[int]:
        return [one for one, controller in self.controllers.items() if controller.is_active]

    async def state(self, topic: str, partition: int = 0) -> LeaderAndIsr | None:
        wanted = TopicPartition(topic, partition)
        return (await self.store.partition_states([wanted])).get(wanted)

    async def until(self, condition: Callable[[], Awaitable[bool] | bool]) -> None:
        """Wait for something that is bound to come true."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                outcome = condition()
                if outcome if isinstance(outcome, bool) else await outcome:
                    return
                await asyncio.sleep(0.005)

    async def until_led(self, topic: str, partition: int, leader: int) -> LeaderAndIsr:
        """Wait until ZooKeeper and all live brokers agree on a leader."""
        wanted = TopicPartition(topic, partition)

        async def agreed() -> bool:
            state = await self.state(topic, partition)
            return (
                state is not None
                and state.leader == leader
                and all(
                    wanted in broker.metadata
                    and broker.metadata[wanted].leader_epoch == state.leader_epoch
                    for one, broker in self.brokers.items()
                    if one in self.controllers
                )
            )

        await self.until(agreed)
        state = await self.state(topic, partition)
        assert state is not None
        return state


def run_cluster(
    connect: str,
    scenario: Callable[[StandInCluster], Awaitable[None]],
    brokers: int = 2,
    **options: Any,
) -> None:
    """Run a scenario on some brokers, of which the first is the controller."""

    async def with_cluster() -> None:
        async with StandInCluster(connect, **options) as cluster:
            for broker in range(brokers):
                await cluster.start(broker)
                await cluster.until(lambda: cluster.active == [0])
            if brokers:
                everyone = set(range(brokers))
                await cluster.until(lambda: cluster.brokers[0].live_brokers == everyone)
            await scenario(cluster)

    asyncio.run(asyncio.wait_for(with_cluster(), 90))
