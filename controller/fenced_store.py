"""The writes that only the controller makes, each conditional on its term of office.

Every transaction first checks the version of /controller_epoch, so that a controller which has been
deposed without noticing changes nothing. Writes go in transactions of many nodes; one that meets a
conflict is taken apart and written node by node. Decides nothing.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controller import znodes
from controller.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition
from controller.metadata_store import ControllerEpoch, ControllerMovedError
from controller.zookeeper import (
    BadVersionError,
    Check,
    Create,
    Delete,
    MultiError,
    NodeExistsError,
    NoNodeError,
    Operation,
    SessionExpiredError,
    SetData,
    Stat,
    ZooKeeperClient,
    ZooKeeperError,
)

_PARTITIONS_PER_TRANSACTION: Final = 100


@dataclass(slots=True)
class StateWrites:
    """What became of writing partition states, by partition."""

    written: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    conflicts: list[TopicPartition] = field(default_factory=list)
    failed: dict[TopicPartition, ZooKeeperError] = field(default_factory=dict)


class FencedStore:
    """ZooKeeper, as the controller of one epoch may change it."""

    def __init__(self, client: ZooKeeperClient, term: ControllerEpoch) -> None:
        self._client = client
        self._check = Check(znodes.CONTROLLER_EPOCH, term.zk_version)
        self.term = term

    async def create_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> StateWrites:
        """The first state of new partitions, with the nodes above it."""
        topics = {partition.topic for partition in states}
        await asyncio.gather(*map(self._create_partitions_node, topics))
        result = StateWrites()
        await asyncio.gather(*(self._create_states(part, result) for part in _parts(states)))
        return result

    async def update_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> StateWrites:
        """Changed states, each on condition of its version; those that changed are conflicts."""
        result = StateWrites()
        await asyncio.gather(*(self._update_states(part, result) for part in _parts(states)))
        return result

    async def set_assignment(self, topic: str, assignment: Mapping[int, ReplicaAssignment]) -> None:
        await self._write([SetData(znodes.topic(topic), znodes.encode_topic(assignment))])

    async def delete_topic(self, topic: str) -> None:
        """Remove a topic's nodes and settings, and then the wish to have it deleted."""
        await self._delete_tree(znodes.topic(topic))
        await self._delete(znodes.config(znodes.TOPIC_CONFIGS, topic))
        await self._delete(znodes.deleted_topic(topic))

    async def forget_deletions(self, topics: Iterable[str]) -> None:
        await self.delete_nodes(map(znodes.deleted_topic, topics))

    async def delete_nodes(self, paths: Iterable[str]) -> None:
        """Remove nodes that have served, such as notifications; missing ones are fine."""
        await asyncio.gather(*map(self._delete, paths))

    async def set_or_create(self, path: str, data: bytes) -> None:
        try:
            await self._write([SetData(path, data)])
        except NoNodeError:
            await self._write([Create(path, data)])

    async def resign(self) -> None:
        await self._delete(znodes.CONTROLLER)

    # -- states ------------------------------------------------------------------------------

    async def _create_partitions_node(self, topic: str) -> None:
        try:
            await self._create(znodes.topic_partitions(topic))
        except NoNodeError:
            return  # the topic is gone, as each of its partitions will say

    async def _create_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], result: StateWrites
    ) -> None:
        operations: list[Operation] = []
        for partition, state in states.items():
            operations.append(Create(znodes.partition(partition)))
            operations.append(_state_creation(partition, state))
        try:
            await self._write(operations)
        except (NodeExistsError, NoNodeError):
            for partition, state in states.items():
                await self._create_state(partition, state, result)
        else:
            result.written |= states

    async def _create_state(
        self, partition: TopicPartition, state: LeaderAndIsr, result: StateWrites
    ) -> None:
        try:
            await self._create(znodes.partition(partition))
            await self._write([_state_creation(partition, state)])
        except NodeExistsError as error:
            node = await self._client.get(znodes.partition_state(partition))
            if node.data != znodes.encode_partition_state(state):  # else our own, sent twice
                result.failed[partition] = error
                return
        except NoNodeError as error:
            result.failed[partition] = error
            return
        result.written[partition] = state

    async def _update_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], result: StateWrites
    ) -> None:
        operations: list[Operation] = [
            SetData(
                znodes.partition_state(partition),
                znodes.encode_partition_state(state),
                state.version,
            )
            for partition, state in states.items()
        ]
        try:
            stats = await self._write(operations)
        except SessionExpiredError:
            raise
        except ZooKeeperError as error:
            if len(states) > 1:
                for partition, state in states.items():
                    await self._update_states({partition: state}, result)
            elif isinstance(error, BadVersionError):
                result.conflicts.extend(states)
            else:
                result.failed |= dict.fromkeys(states, error)
            return
        for (partition, state), stat in zip(states.items(), stats, strict=True):
            assert stat is not None
            result.written[partition] = replace(state, version=stat.version)

    # -- transactions ------------------------------------------------------------------------

    async def _write(self, operations: Sequence[Operation]) -> list[Stat | None]:
        try:
            answers = await self._client.multi([self._check, *operations])
        except MultiError as error:
            if error.index == 0:
                raise ControllerMovedError(f"another controller was elected: {error}") from None
            raise error.cause from None
        return answers[1:]

    async def _create(self, path: str) -> None:
        try:
            await self._write([Create(path)])
        except NodeExistsError:
            return

    async def _delete(self, path: str) -> None:
        try:
            await self._write([Delete(path)])
        except NoNodeError:
            return

    async def _delete_tree(self, path: str) -> None:
        nodes = await self._tree(path)
        for start in range(0, len(nodes), _PARTITIONS_PER_TRANSACTION):
            part = nodes[start : start + _PARTITIONS_PER_TRANSACTION]
            try:
                await self._write([Delete(node) for node in part])
            except NoNodeError:
                for node in part:
                    await self._delete(node)

    async def _tree(self, path: str) -> list[str]:
        """A node and all below it, children before their parents."""
        try:
            names = await self._client.children(path)
        except NoNodeError:
            return []
        below = await asyncio.gather(*(self._tree(f"{path}/{name}") for name in names))
        return [node for tree in below for node in tree] + [path]


def _state_creation(partition: TopicPartition, state: LeaderAndIsr) -> Create:
    return Create(znodes.partition_state(partition), znodes.encode_partition_state(state))


def _parts(
    states: Mapping[TopicPartition, LeaderAndIsr],
) -> list[dict[TopicPartition, LeaderAndIsr]]:
    items = list(states.items())
    return [
        dict(items[start : start + _PARTITIONS_PER_TRANSACTION])
        for start in range(0, len(items), _PARTITIONS_PER_TRANSACTION)
    ]
