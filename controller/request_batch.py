"""Collects what brokers must be told and puts it into few requests.

A change of a partition goes to its replicas as LeaderAndIsr and to every broker as UpdateMetadata;
all changes of one step travel together, LeaderAndIsr before UpdateMetadata before StopReplica.
"""

from collections.abc import Callable, Iterable
from typing import Final

from controller import events
from controller.channels import Channels
from controller.cluster import (
    INITIAL_LEADER_EPOCH,
    LEADER_DURING_DELETE,
    SECURITY_PROTOCOL_IDS,
    BrokerInfo,
    TopicPartition,
)
from controller.context import ControllerContext
from network.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from network.protocol.messages.stop_replica import (
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicV1,
)
from network.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from network.protocol.schema import Response

_INITIAL_VERSION: Final = 0

Enqueue = Callable[[events.Event], None]


class RequestBatch:
    """One step's worth of requests."""

    def __init__(
        self,
        controller_id: int,
        context: ControllerContext,
        channels: Channels,
        enqueue: Enqueue,
        listener_name: str | None = None,
    ) -> None:
        self._controller_id = controller_id
        self._context = context
        self._channels = channels
        self._enqueue = enqueue
        self._listener_name = listener_name
        self._leader_and_isr: dict[int, dict[TopicPartition, bool]] = {}
        self._brokers_to_update: set[int] = set()
        self._partitions_to_update: dict[TopicPartition, None] = {}
        self._to_stop: dict[int, dict[TopicPartition, bool]] = {}

    # -- collecting --------------------------------------------------------------------------

    def add_leader_and_isr(
        self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool
    ) -> None:
        """Tell replicas what they lead and follow, and everybody else of it."""
        for broker in brokers:
            partitions = self._leader_and_isr.setdefault(broker, {})
            partitions[partition] = is_new or partitions.get(partition, False)
        self.add_update_metadata(self._context.brokers, [partition])

    def add_update_metadata(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Tell brokers of partitions; without any, only of the brokers that are alive."""
        self._brokers_to_update.update(brokers)
        self._partitions_to_update.update(dict.fromkeys(partitions))

    def add_stop_replica(self, broker: int, partition: TopicPartition, *, delete: bool) -> None:
        self._to_stop.setdefault(broker, {})[partition] = delete

    # -- sending -----------------------------------------------------------------------------

    def send(self) -> None:
        """Hand everything collected to the channels."""
        self._send_leader_and_isr()
        self._send_update_metadata()
        self._send_stop_replica()

    def _send_leader_and_isr(self) -> None:
        for broker_id, partitions in self._leader_and_isr.items():
            broker = self._context.brokers.get(broker_id)
            if broker is None:
                continue
            topics: dict[str, list[LeaderAndIsrPartitionState]] = {}
            for partition, is_new in partitions.items():
                state = self._leader_and_isr_state(partition, is_new)
                topics.setdefault(partition.topic, []).append(state)
            leaders = {one.leader for states in topics.values() for one in states}
            request = LeaderAndIsrRequest(
                controller_id=self._controller_id,
                controller_epoch=self._context.epoch,
                broker_epoch=broker.epoch,
                topic_states=[
                    LeaderAndIsrTopicState(topic_name=topic, partition_states=states)
                    for topic, states in topics.items()
                ],
                live_leaders=self._live_leaders(leaders),
            )
            self._channels.put(broker_id, request, self._leader_and_isr_answered(broker_id))
        self._leader_and_isr.clear()

    def _leader_and_isr_state(
        self, partition: TopicPartition, is_new: bool
    ) -> LeaderAndIsrPartitionState:
        leadership = self._context.leadership[partition]
        assignment = self._context.assignment(partition)
        return LeaderAndIsrPartitionState(
            partition_index=partition.partition,
            controller_epoch=leadership.controller_epoch,
            leader=leadership.leader,
            leader_epoch=leadership.leader_epoch,
            isr=list(leadership.isr),
            partition_epoch=leadership.version,
            replicas=list(assignment.replicas),
            adding_replicas=list(assignment.adding),
            removing_replicas=list(assignment.removing),
            is_new=is_new,
        )

    def _live_leaders(self, ids: set[int]) -> list[LeaderAndIsrLiveLeader]:
        leaders = []
        for broker in self._context.brokers.values():
            endpoint = broker.endpoints[0] if broker.endpoints else None
            if self._listener_name is not None:
                endpoint = broker.endpoint(self._listener_name)
            if broker.id in ids and endpoint is not None:
                leaders.append(
                    LeaderAndIsrLiveLeader(
                        broker_id=broker.id, host_name=endpoint.host, port=endpoint.port
                    )
                )
        return leaders

    def _send_update_metadata(self) -> None:
        recipients = [
            self._context.brokers[one]
            for one in sorted(self._brokers_to_update)
            if one in self._context.brokers
        ]
        if recipients:
            topics: dict[str, list[UpdateMetadataPartitionState]] = {}
            for partition in self._partitions_to_update:
                state = self._update_metadata_state(partition)
                if state is not None:
                    topics.setdefault(partition.topic, []).append(state)
            topic_states = [
                UpdateMetadataTopicState(topic_name=topic, partition_states=states)
                for topic, states in topics.items()
            ]
            live_brokers = [_live_broker(one) for one in self._context.brokers.values()]
            for broker in recipients:
                request = UpdateMetadataRequest(
                    controller_id=self._controller_id,
                    controller_epoch=self._context.epoch,
                    broker_epoch=broker.epoch,
                    topic_states=topic_states,
                    live_brokers=live_brokers,
                )
                self._channels.put(broker.id, request, self._update_metadata_answered(broker.id))
        self._brokers_to_update.clear()
        self._partitions_to_update.clear()

    def _update_metadata_state(
        self, partition: TopicPartition
    ) -> UpdateMetadataPartitionState | None:
        """A partition as all brokers should know it; None while it has no leader yet."""
        leadership = self._context.leadership.get(partition)
        if leadership is None:
            return None
        replicas = self._context.assignment(partition).replicas
        deleted = self._context.is_to_be_deleted(partition.topic)
        return UpdateMetadataPartitionState(
            partition_index=partition.partition,
            controller_epoch=leadership.controller_epoch,
            leader=LEADER_DURING_DELETE if deleted else leadership.leader,
            leader_epoch=INITIAL_LEADER_EPOCH if deleted else leadership.leader_epoch,
            isr=list(leadership.isr),
            zk_version=_INITIAL_VERSION if deleted else leadership.version,
            replicas=list(replicas),
            offline_replicas=[
                broker for broker in replicas if not self._context.is_online(broker, partition)
            ],
        )

    def _send_stop_replica(self) -> None:
        for broker_id, partitions in self._to_stop.items():
            broker = self._context.brokers.get(broker_id)
            if broker is None:
                continue
            for delete in (True, False):
                topics: dict[str, list[int]] = {}
                for partition, wants_delete in partitions.items():
                    if wants_delete is delete:
                        topics.setdefault(partition.topic, []).append(partition.partition)
                if topics:
                    request = StopReplicaRequest(
                        controller_id=self._controller_id,
                        controller_epoch=self._context.epoch,
                        broker_epoch=broker.epoch,
                        delete_partitions=delete,
                        topics=[
                            StopReplicaTopicV1(name=topic, partition_indexes=numbers)
                            for topic, numbers in topics.items()
                        ],
                    )
                    answered = self._stop_replica_answered(broker_id) if delete else None
                    self._channels.put(broker_id, request, answered)
        self._to_stop.clear()

    # -- answers become events ---------------------------------------------------------------

    def _leader_and_isr_answered(self, broker: int) -> Callable[[Response], None]:
        def answered(response: Response) -> None:
            assert isinstance(response, LeaderAndIsrResponse)
            self._enqueue(events.LeaderAndIsrAnswered(broker, response))

        return answered

    def _update_metadata_answered(self, broker: int) -> Callable[[Response], None]:
        def answered(response: Response) -> None:
            assert isinstance(response, UpdateMetadataResponse)
            self._enqueue(events.UpdateMetadataAnswered(broker, response))

        return answered

    def _stop_replica_answered(self, broker: int) -> Callable[[Response], None]:
        def answered(response: Response) -> None:
            assert isinstance(response, StopReplicaResponse)
            self._enqueue(events.StopReplicaAnswered(broker, response))

        return answered


def _live_broker(broker: BrokerInfo) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener_name,
                security_protocol=SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
            )
            for endpoint in broker.endpoints
        ],
        rack=broker.rack,
    )
