"""What brokers and controllers read and write in ZooKeeper, as operations on the cluster's nouns.

Owns the order and the conditions of the requests; znodes.py owns paths and formats, and
fenced_store.py the writes that only the controller may make. Decides nothing.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from controller import znodes
from controller.cluster import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from controller.zookeeper import (
    BadVersionError,
    Create,
    MultiError,
    Node,
    NodeExistsError,
    NoNodeError,
    Operation,
    SetData,
    Stat,
    ZooKeeperClient,
)

__all__ = [
    "BrokerInfo",
    "BrokerRegisteredError",
    "ControllerEpoch",
    "ControllerMovedError",
    "Endpoint",
    "MetadataStore",
    "ProducerIdsExhaustedError",
    "TopicExistsError",
]

logger = logging.getLogger(__name__)

_FIRST_CONTROLLER_EPOCH: Final = 0
_LAST_PRODUCER_ID: Final = 2**63 - 1


class BrokerRegisteredError(Exception):
    """Another broker of the same id is registered."""


class TopicExistsError(Exception):
    """A topic of this name is there already."""


class ControllerMovedError(Exception):
    """Another broker is, or may be, the controller by now."""


class ProducerIdsExhaustedError(Exception):
    """There are no producer ids left."""


@dataclass(frozen=True, slots=True)
class ControllerEpoch:
    """A term of office; every write of that controller is conditional on the znode's version."""

    epoch: int
    zk_version: int


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class MetadataStore:
    """The cluster's metadata in ZooKeeper."""

    def __init__(self, client: ZooKeeperClient, now_ms: Callable[[], int] = _now_ms) -> None:
        self.client = client
        self._now_ms = now_ms
        self._registered_in_session: int | None = None

    # -- brokers -----------------------------------------------------------------------------

    async def create_top_level_paths(self) -> None:
        await asyncio.gather(*(self.client.ensure_path(path) for path in znodes.PERSISTENT_PATHS))

    async def get_or_create_cluster_id(self, proposed: str) -> str:
        """The cluster's id; the proposed one becomes it if the cluster has none."""
        try:
            await self._create_with_parents(znodes.CLUSTER_ID, znodes.encode_cluster_id(proposed))
        except NodeExistsError:
            return znodes.decode_cluster_id((await self.client.get(znodes.CLUSTER_ID)).data)
        return proposed

    async def next_broker_id(self) -> int:
        """A number that no broker has had: 1, 2, 3 and so on."""
        with suppress(NodeExistsError):
            await self._create_with_parents(znodes.BROKER_SEQUENCE, None)
        return (await self.client.set(znodes.BROKER_SEQUENCE, b"")).version

    async def register_broker(self, info: BrokerInfo) -> int:
        """Announce the broker for as long as the session lasts; the answer is its epoch."""
        path = znodes.broker(info.id)
        stat = await self._create_ephemeral(path, znodes.encode_broker(info, self._now_ms()))
        if stat is None:
            raise BrokerRegisteredError(
                f"a broker with id {info.id} is registered already ({path}): stop it, choose"
                " another broker.id, or wait until its session has timed out"
            )
        self._registered_in_session = self.client.session_id
        addresses = ",".join(map(str, info.endpoints))
        logger.info("Registered broker %d at %s, epoch %d", info.id, addresses, stat.czxid)
        return stat.czxid

    async def update_broker(self, info: BrokerInfo) -> None:
        """Change what a registered broker says of itself."""
        data = znodes.encode_broker(info, self._now_ms())
        await self.client.set(znodes.broker(info.id), data)

    async def announce_failed_log_directory(self, broker_id: int) -> None:
        """Have the controller ask the broker which of its replicas it has lost."""
        data = znodes.encode_log_dir_event(broker_id)
        await self.client.create(znodes.LOG_DIR_EVENT_PREFIX, data, sequential=True)

    async def brokers(self) -> dict[int, BrokerInfo]:
        """All registered brokers by id, in the order of their ids."""
        ids = sorted(map(int, await self._children(znodes.BROKER_IDS)))
        found = await asyncio.gather(*map(self.broker, ids))
        return {info.id: info for info in found if info is not None}

    async def broker(self, broker_id: int) -> BrokerInfo | None:
        node = await self._get(znodes.broker(broker_id))
        if node is None:
            return None
        return znodes.decode_broker(broker_id, node.data, node.stat.czxid)

    # -- controller --------------------------------------------------------------------------

    async def controller_id(self) -> int | None:
        node = await self._get(znodes.CONTROLLER)
        return None if node is None else znodes.decode_controller(node.data)

    async def vacate_controller(self) -> None:
        """Give up /controller, if it is of this session."""
        stat = await self.client.exists(znodes.CONTROLLER)
        if stat is not None and stat.ephemeral_owner == self.client.session_id:
            with suppress(NoNodeError):
                await self.client.delete(znodes.CONTROLLER)

    async def elect_controller(self, broker_id: int) -> ControllerEpoch:
        """Become the controller with the next epoch, or raise ControllerMovedError."""
        current, version = await self._controller_epoch()
        elected = current + 1
        operations: list[Operation] = [
            Create(
                znodes.CONTROLLER,
                znodes.encode_controller(broker_id, self._now_ms()),
                ephemeral=True,
            ),
            SetData(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(elected), version),
        ]
        try:
            _, stat = await self.client.multi(operations)
        except MultiError as error:
            if not isinstance(error.cause, NodeExistsError | BadVersionError):
                raise error.cause from None
            return await self._elected_after_all(broker_id, elected)
        assert stat is not None
        return ControllerEpoch(elected, stat.version)

    async def _elected_after_all(self, broker_id: int, expected: int) -> ControllerEpoch:
        """Whether a refused election was in truth our own, sent twice by a lost connection."""
        node = await self._get(znodes.CONTROLLER)
        if node is not None and node.stat.ephemeral_owner == self.client.session_id:
            epoch, version = await self._controller_epoch()
            if znodes.decode_controller(node.data) == broker_id and epoch == expected:
                return ControllerEpoch(epoch, version)
        raise ControllerMovedError("another broker was elected as the controller")

    async def _controller_epoch(self) -> tuple[int, int]:
        node = await self._get(znodes.CONTROLLER_EPOCH)
        if node is None:
            first = znodes.encode_controller_epoch(_FIRST_CONTROLLER_EPOCH)
            with suppress(NodeExistsError):
                await self.client.create(znodes.CONTROLLER_EPOCH, first)
            node = await self.client.get(znodes.CONTROLLER_EPOCH)
        return znodes.decode_controller_epoch(node.data), node.stat.version

    # -- topics ------------------------------------------------------------------------------

    async def topics(self) -> set[str]:
        return set(await self._children(znodes.TOPICS))

    async def topics_to_delete(self) -> set[str]:
        return set(await self._children(znodes.DELETE_TOPICS))

    async def create_topic(
        self,
        topic: str,
        assignment: Mapping[int, Sequence[int]],
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Write a new topic, its settings first; the controller does the rest."""
        if await self.client.exists(znodes.topic(topic)) is not None:
            raise TopicExistsError(topic)
        await self.set_config(znodes.TOPIC_CONFIGS, topic, config or {})
        replicas = {
            partition: ReplicaAssignment(tuple(assignment[partition]))
            for partition in sorted(assignment)
        }
        try:
            await self._create_with_parents(znodes.topic(topic), znodes.encode_topic(replicas))
        except NodeExistsError:
            raise TopicExistsError(topic) from None

    async def set_assignment(self, topic: str, assignment: Mapping[int, ReplicaAssignment]) -> None:
        """Change a topic's partitions; how more of them are added."""
        await self.client.set(znodes.topic(topic), znodes.encode_topic(assignment))

    async def mark_for_deletion(self, topic: str) -> None:
        with suppress(NodeExistsError):
            await self._create_with_parents(znodes.deleted_topic(topic), None)

    async def assignments(self, topics: Iterable[str]) -> dict[str, dict[int, ReplicaAssignment]]:
        """The partitions of those of the topics that are there."""
        names = list(topics)
        nodes = await asyncio.gather(*(self._get(znodes.topic(name)) for name in names))
        return {
            name: znodes.decode_topic(name, node.data)
            for name, node in zip(names, nodes, strict=True)
            if node is not None
        }

    async def partition_states(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Leader and in-sync replicas of those of the partitions that have any."""
        nodes = await asyncio.gather(
            *(self._get(znodes.partition_state(partition)) for partition in partitions)
        )
        return {
            partition: znodes.decode_partition_state(partition, node.data, node.stat.version)
            for partition, node in zip(partitions, nodes, strict=True)
            if node is not None
        }

    async def update_partition_state(
        self, partition: TopicPartition, state: LeaderAndIsr
    ) -> int | None:
        """A leader's change of its in-sync replicas, on condition of ``state.version``.

        The answer is the new version, or None where somebody else has changed the state meanwhile.
        """
        path, data = znodes.partition_state(partition), znodes.encode_partition_state(state)
        try:
            return (await self.client.set(path, data, state.version)).version
        except BadVersionError:
            node = await self.client.get(path)  # it may be our own write, sent twice
            if node.data == data and node.stat.version == state.version + 1:
                return node.stat.version
            return None

    # -- producer ids ------------------------------------------------------------------------

    async def claim_producer_ids(self, broker_id: int, count: int) -> range:
        """Ids that are nobody else's, ever: the block after the last one that was claimed.

        A refused write may have been our own, sent twice, or that of an earlier life of this
        broker; either way the next block is beyond doubt, and ids are plenty.
        """
        while True:
            node = await self.client.get(znodes.PRODUCER_ID_BLOCK)
            first = 0 if not node.data else znodes.decode_producer_id_block(node.data)[2] + 1
            last = first + count - 1
            if last > _LAST_PRODUCER_ID:
                raise ProducerIdsExhaustedError("all producer ids have been given away")
            data = znodes.encode_producer_id_block(broker_id, first, last)
            try:
                await self.client.set(znodes.PRODUCER_ID_BLOCK, data, node.stat.version)
            except BadVersionError:
                continue
            return range(first, last + 1)

    # -- settings ----------------------------------------------------------------------------

    async def config(self, kind: str, name: str) -> dict[str, str]:
        """Settings of something; as in Kafka, none where they cannot be read."""
        path = znodes.config(kind, name)
        node = await self._get(path)
        try:
            return {} if node is None else znodes.decode_config(path, node.data)
        except znodes.MalformedNodeError as error:
            logger.error("Settings are ignored: %s", error)
            return {}

    async def topic_config(self, topic: str) -> dict[str, str]:
        return await self.config(znodes.TOPIC_CONFIGS, topic)

    async def set_config(self, kind: str, name: str, settings: Mapping[str, str]) -> None:
        await self._set_or_create(znodes.config(kind, name), znodes.encode_config(settings))

    async def configs(self, kind: str) -> dict[str, dict[str, str]]:
        """Everything of a kind that has settings; those of a user's clients by user/clients/id."""
        names = sorted(await self._children(znodes.config(kind, "").rstrip("/")))
        if kind == znodes.USER_CONFIGS:
            below = [f"{name}/{znodes.CLIENT_CONFIGS}" for name in names]
            found = await asyncio.gather(
                *(self._children(znodes.config(kind, path)) for path in below)
            )
            names += [
                f"{path}/{name}"
                for path, children in zip(below, found, strict=True)
                for name in sorted(children)
            ]
        settings = await asyncio.gather(*(self.config(kind, name) for name in names))
        return dict(zip(names, settings, strict=True))

    async def change_config(self, kind: str, name: str, settings: Mapping[str, str]) -> None:
        """Write the settings of something, and have every broker read them."""
        await self.set_config(kind, name, settings)
        await self.announce_config_change(kind, name)

    async def announce_config_change(self, kind: str, name: str) -> None:
        data = znodes.encode_config_change(f"{kind}/{name}")
        await self.client.create(znodes.CONFIG_CHANGE_PREFIX, data, sequential=True)

    # -- offsets of old consumers --------------------------------------------------------------

    async def consumer_offset(self, group: str, partition: TopicPartition) -> int | None:
        path = znodes.consumer_offset(group, partition)
        node = await self._get(path)
        return None if node is None else znodes.decode_consumer_offset(path, node.data)

    async def set_consumer_offset(self, group: str, partition: TopicPartition, offset: int) -> None:
        path = znodes.consumer_offset(group, partition)
        await self._set_or_create(path, znodes.encode_consumer_offset(offset))

    # -- helpers -----------------------------------------------------------------------------

    async def _get(self, path: str) -> Node | None:
        try:
            return await self.client.get(path)
        except NoNodeError:
            return None

    async def _children(self, path: str) -> list[str]:
        try:
            return await self.client.children(path)
        except NoNodeError:
            return []

    async def _set_or_create(self, path: str, data: bytes) -> None:
        try:
            await self.client.set(path, data)
        except NoNodeError:
            try:
                await self._create_with_parents(path, data)
            except NodeExistsError:
                await self.client.set(path, data)

    async def _create_with_parents(self, path: str, data: bytes | None) -> None:
        try:
            await self.client.create(path, data)
        except NoNodeError:
            await self.client.ensure_path(path.rpartition("/")[0])
            await self.client.create(path, data)

    async def _create_ephemeral(self, path: str, data: bytes) -> Stat | None:
        """Create a node of this session; None where another session holds it.

        A node that our own earlier session left (a broker whose session expired can meet it) is
        replaced; one of this very session is our own request, sent twice.
        """
        operations: list[Operation] = [Create(path, ephemeral=True), SetData(path, data, 0)]
        while True:
            try:
                return (await self.client.multi(operations))[1]
            except MultiError as error:
                if not isinstance(error.cause, NodeExistsError):
                    raise error.cause from None
            found = await self.client.exists(path)
            if found is None:
                continue
            if found.ephemeral_owner == self.client.session_id:
                return found
            if found.ephemeral_owner != self._registered_in_session:
                return None
            logger.info("Replacing %s, which this broker's expired session has left", path)
            with suppress(NoNodeError):
                await self.client.delete(path)
