"""The partition state machine: which states a partition may be in, and what each move entails.

            election               leader gone
    NEW ---------------> ONLINE <--------------> OFFLINE ---> NON_EXISTENT
     ^                                election
     | assigned
    NON_EXISTENT

Only the move to ONLINE does something: it elects a leader, writes it to ZooKeeper and has the
replicas told. A move from a state that the table does not allow is logged and refused.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from controller import elections
from controller.cluster import LeaderAndIsr, TopicPartition
from controller.context import ControllerContext, PartitionState
from controller.elections import ElectionFailedError, ElectionResults, Strategy
from controller.fenced_store import FencedStore
from controller.metadata_store import MetadataStore
from controller.request_batch import RequestBatch

logger = logging.getLogger(__name__)

VALID_PREVIOUS_STATES: Final = {
    PartitionState.NEW: {PartitionState.NON_EXISTENT},
    PartitionState.ONLINE: {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE},
    PartitionState.OFFLINE: {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE},
    PartitionState.NON_EXISTENT: {PartitionState.OFFLINE},
}

_UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


class PartitionStateMachine:
    """Moves partitions from state to state."""

    def __init__(
        self,
        context: ControllerContext,
        store: MetadataStore,
        fenced: FencedStore,
        batch: RequestBatch,
        *,
        unclean_election: bool = False,
    ) -> None:
        self._context = context
        self._store = store
        self._fenced = fenced
        self._batch = batch
        self.unclean_election = unclean_election

    async def start(self) -> None:
        """Find the state of every partition, and bring those without a leader online."""
        for partition in self._context.partitions():
            self._context.partition_states[partition] = self._found_state(partition)
        await self.bring_online()

    def _found_state(self, partition: TopicPartition) -> PartitionState:
        leadership = self._context.leadership.get(partition)
        if leadership is None:
            return PartitionState.NEW
        if self._context.is_online(leadership.leader, partition):
            return PartitionState.ONLINE
        return PartitionState.OFFLINE

    async def bring_online(self, topic: str | None = None) -> None:
        """Elect a leader for every partition, of one topic or of all, that has none and is not
        about to be deleted."""
        waiting = [
            partition
            for partition in self._context.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
            if topic in (None, partition.topic)
            and not self._context.is_to_be_deleted(partition.topic)
        ]
        await self.move(waiting, PartitionState.ONLINE)

    async def move(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        strategy: Strategy = Strategy.OFFLINE,
    ) -> ElectionResults:
        """Move partitions to a state; the results are those of the elections that it took."""
        allowed = [one for one in partitions if self._may_move(one, target)]
        if target is not PartitionState.ONLINE:
            self._context.partition_states |= dict.fromkeys(allowed, target)
            return {}
        new = [one for one in allowed if self._state(one) is PartitionState.NEW]
        led_before = [one for one in allowed if self._state(one) is not PartitionState.NEW]
        results = await self._appoint_first_leaders(new) if new else {}
        if led_before:
            results |= await self._elect_leaders(led_before, strategy)
        for partition, result in results.items():
            if isinstance(result, LeaderAndIsr):
                self._context.partition_states[partition] = PartitionState.ONLINE
            else:
                logger.warning("%s stays %s: %s", partition, self._state(partition).value, result)
        self._batch.send()
        return results

    def _state(self, partition: TopicPartition) -> PartitionState:
        return self._context.partition_state(partition)

    def _may_move(self, partition: TopicPartition, target: PartitionState) -> bool:
        state = self._state(partition)
        allowed = state in VALID_PREVIOUS_STATES[target]
        if not allowed:
            logger.error("%s can't go from %s to %s", partition, state.value, target.value)
        return allowed

    # -- NEW to ONLINE -----------------------------------------------------------------------

    async def _appoint_first_leaders(self, partitions: list[TopicPartition]) -> ElectionResults:
        """The first live replica leads, and all live ones start in sync."""
        results: ElectionResults = {}
        first: dict[TopicPartition, LeaderAndIsr] = {}
        for partition in partitions:
            live = self._context.online_replicas(partition)
            if live:
                first[partition] = LeaderAndIsr(live[0], live, controller_epoch=self._context.epoch)
            else:
                replicas = self._context.assignment(partition).replicas
                results[partition] = ElectionFailedError(f"no live broker among {replicas}")
        writes = await self._fenced.create_partition_states(first)
        for partition, error in writes.failed.items():
            results[partition] = ElectionFailedError(str(error))
        for partition, state in writes.written.items():
            self._context.leadership[partition] = state
            self._batch.add_leader_and_isr(state.isr, partition, is_new=True)
            results[partition] = state
        return results

    # -- ONLINE and OFFLINE to ONLINE ----------------------------------------------------------

    async def _elect_leaders(
        self, partitions: list[TopicPartition], strategy: Strategy
    ) -> ElectionResults:
        """Elect and write; where a leader has changed the state meanwhile, read and elect again."""
        results: ElectionResults = {}
        remaining = partitions
        while remaining:
            current = await self._current_states(remaining, results)
            elected = await self._elect(current, strategy, results)
            writes = await self._fenced.update_partition_states(elected)
            for partition, error in writes.failed.items():
                results[partition] = ElectionFailedError(str(error))
            for partition, state in writes.written.items():
                self._context.leadership[partition] = state
                recipients = self._recipients(partition, strategy)
                self._batch.add_leader_and_isr(recipients, partition, is_new=False)
                results[partition] = state
            remaining = writes.conflicts
        return results

    async def _current_states(
        self, partitions: list[TopicPartition], results: ElectionResults
    ) -> dict[TopicPartition, LeaderAndIsr]:
        found = await self._store.partition_states(partitions)
        current = {}
        for partition in partitions:
            state = found.get(partition)
            if state is None:
                results[partition] = ElectionFailedError("it has no state in ZooKeeper")
            elif state.controller_epoch > self._context.epoch:
                results[partition] = ElectionFailedError(
                    f"a controller of epoch {state.controller_epoch} has written its state"
                )
            else:
                current[partition] = state
        return current

    async def _elect(
        self,
        current: Mapping[TopicPartition, LeaderAndIsr],
        strategy: Strategy,
        results: ElectionResults,
    ) -> dict[TopicPartition, LeaderAndIsr]:
        unclean = await self._unclean_topics(current, strategy)
        elected = {}
        for partition, state in current.items():
            chosen = self._choose(partition, state, strategy, partition.topic in unclean)
            if chosen is None:
                results[partition] = ElectionFailedError(
                    f"no replica may lead when {strategy.value}"
                )
            else:
                elected[partition] = replace(chosen, controller_epoch=self._context.epoch)
        return elected

    def _choose(
        self, partition: TopicPartition, state: LeaderAndIsr, strategy: Strategy, unclean: bool
    ) -> LeaderAndIsr | None:
        assignment = self._context.assignment(partition)
        live = self._context.online_replicas(partition)
        match strategy:
            case Strategy.OFFLINE | Strategy.UNCLEAN:
                return elections.offline_leader(assignment, state, live, allow_unclean=unclean)
            case Strategy.PREFERRED:
                return elections.preferred_leader(assignment, state, live)
            case Strategy.REASSIGNMENT:
                return elections.reassignment_leader(assignment, state, live)
            case Strategy.CONTROLLED_SHUTDOWN:
                return elections.controlled_shutdown_leader(
                    assignment,
                    state,
                    self._live_or_leaving(partition),
                    self._context.shutting_down,
                )

    def _recipients(self, partition: TopicPartition, strategy: Strategy) -> tuple[int, ...]:
        """The replicas that are told of a new leader."""
        match strategy:
            case Strategy.OFFLINE | Strategy.UNCLEAN:
                return self._context.online_replicas(partition)
            case Strategy.PREFERRED:
                return self._context.assignment(partition).replicas
            case Strategy.REASSIGNMENT:
                return self._context.assignment(partition).target
            case Strategy.CONTROLLED_SHUTDOWN:
                return self._live_or_leaving(partition)

    def _live_or_leaving(self, partition: TopicPartition) -> tuple[int, ...]:
        return tuple(
            broker
            for broker in self._context.assignment(partition).replicas
            if self._context.is_online(broker, partition, or_shutting_down=True)
        )

    async def _unclean_topics(
        self, current: Mapping[TopicPartition, LeaderAndIsr], strategy: Strategy
    ) -> set[str]:
        """The topics that may lose records rather than stay without a leader, of those in need."""
        if strategy not in (Strategy.OFFLINE, Strategy.UNCLEAN):
            return set()
        in_need = {
            partition.topic
            for partition, state in current.items()
            if not any(self._context.is_online(broker, partition) for broker in state.isr)
        }
        if strategy is Strategy.UNCLEAN:
            return in_need
        default = "true" if self.unclean_election else "false"
        return {
            topic
            for topic in in_need
            if (await self._store.topic_config(topic)).get(_UNCLEAN_ELECTION, default) == "true"
        }
