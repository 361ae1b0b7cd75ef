"""The replica state machine: the life of one broker's copy of a partition.

    NON_EXISTENT -> NEW -> ONLINE <-> OFFLINE -> DELETION_STARTED -> DELETION_SUCCESSFUL
                                         ^              |                     |
                                         |              v                     v
                                         +--- DELETION_INELIGIBLE        NON_EXISTENT

A move from a state that the table does not allow is logged and refused.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from controller.cluster import NO_LEADER, LeaderAndIsr, Replica, TopicPartition
from controller.context import ControllerContext, ReplicaState
from controller.fenced_store import FencedStore
from controller.metadata_store import MetadataStore
from controller.request_batch import RequestBatch

logger = logging.getLogger(__name__)

_FROM_AND_TO_SERVICE: Final = {
    ReplicaState.NEW,
    ReplicaState.ONLINE,
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_INELIGIBLE,
}

VALID_PREVIOUS_STATES: Final = {
    ReplicaState.NEW: {ReplicaState.NON_EXISTENT},
    ReplicaState.ONLINE: _FROM_AND_TO_SERVICE,
    ReplicaState.OFFLINE: _FROM_AND_TO_SERVICE,
    ReplicaState.DELETION_STARTED: {ReplicaState.OFFLINE},
    ReplicaState.DELETION_SUCCESSFUL: {ReplicaState.DELETION_STARTED},
    ReplicaState.DELETION_INELIGIBLE: {ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED},
    ReplicaState.NON_EXISTENT: {ReplicaState.DELETION_SUCCESSFUL},
}


class ReplicaStateMachine:
    """Moves replicas from state to state."""

    def __init__(
        self,
        context: ControllerContext,
        store: MetadataStore,
        fenced: FencedStore,
        batch: RequestBatch,
    ) -> None:
        self._context = context
        self._store = store
        self._fenced = fenced
        self._batch = batch

    async def start(self) -> None:
        """Find the state of every replica, and tell each broker what it leads and follows."""
        online: list[Replica] = []
        offline: list[Replica] = []
        for replica in self._context.replicas(self._context.partitions()):
            is_online = self._context.is_online(replica.broker, replica.partition)
            (online if is_online else offline).append(replica)
        # A replica on a dead broker can't be deleted for now, whatever was under way.
        states = self._context.replica_states
        states |= dict.fromkeys(online, ReplicaState.ONLINE)
        states |= dict.fromkeys(offline, ReplicaState.DELETION_INELIGIBLE)
        await self.move(online, ReplicaState.ONLINE)
        await self.move(offline, ReplicaState.OFFLINE)

    async def move(self, replicas: Iterable[Replica], target: ReplicaState) -> None:
        allowed = [one for one in replicas if self._may_move(one, target)]
        if not allowed:
            return
        match target:
            case ReplicaState.NEW:
                moved = [one for one in allowed if self._became_new(one)]
            case ReplicaState.ONLINE:
                moved = [one for one in allowed if self._became_online(one)]
            case ReplicaState.OFFLINE:
                moved = await self._went_offline(allowed)
            case ReplicaState.DELETION_STARTED:
                for replica in allowed:
                    self._batch.add_stop_replica(replica.broker, replica.partition, delete=True)
                moved = allowed
            case ReplicaState.NON_EXISTENT:
                for replica in allowed:
                    assignment = self._context.assignment(replica.partition)
                    self._context.assign(replica.partition, assignment.without(replica.broker))
                    del self._context.replica_states[replica]
                return
            case ReplicaState.DELETION_SUCCESSFUL | ReplicaState.DELETION_INELIGIBLE:
                moved = allowed
        self._context.replica_states |= dict.fromkeys(moved, target)
        self._batch.send()

    def _may_move(self, replica: Replica, target: ReplicaState) -> bool:
        state = self._context.replica_state(replica)
        allowed = state in VALID_PREVIOUS_STATES[target]
        if not allowed:
            logger.error(
                "the replica of %s on broker %d can't go from %s to %s",
                replica.partition,
                replica.broker,
                state.value,
                target.value,
            )
        return allowed

    def _became_new(self, replica: Replica) -> bool:
        leadership = self._context.leadership.get(replica.partition)
        if leadership is None:
            return True
        if leadership.leader == replica.broker:
            logger.error("broker %d leads %s: it is no new replica", replica.broker, replica[0])
            return False
        self._batch.add_leader_and_isr([replica.broker], replica.partition, is_new=True)
        return True

    def _became_online(self, replica: Replica) -> bool:
        """A new replica has been told all when its partition came online; any other is told now."""
        if self._context.replica_state(replica) is ReplicaState.NEW:
            assignment = self._context.assignment(replica.partition)
            if replica.broker not in assignment.replicas:
                everyone = (*assignment.replicas, replica.broker)
                self._context.assign(replica.partition, replace(assignment, replicas=everyone))
        elif replica.partition in self._context.leadership:
            self._batch.add_leader_and_isr([replica.broker], replica.partition, is_new=False)
        return True

    # -- to OFFLINE --------------------------------------------------------------------------

    async def _went_offline(self, replicas: list[Replica]) -> list[Replica]:
        """Stop the replicas and take them out of sync; what remains of the partitions is told."""
        moved = []
        by_broker: dict[int, list[TopicPartition]] = {}
        for replica in replicas:
            self._batch.add_stop_replica(replica.broker, replica.partition, delete=False)
            if replica.partition in self._context.leadership:
                by_broker.setdefault(replica.broker, []).append(replica.partition)
            else:
                self._batch.add_update_metadata(self._context.brokers, [replica.partition])
                moved.append(replica)
        for broker, partitions in by_broker.items():
            for partition in await self._remove_from_isr(broker, partitions):
                if not self._context.is_to_be_deleted(partition.topic):
                    others = self._context.assignment(partition).without(broker).replicas
                    self._batch.add_leader_and_isr(others, partition, is_new=False)
                moved.append(Replica(partition, broker))
        return moved

    async def _remove_from_isr(
        self, broker: int, partitions: list[TopicPartition]
    ) -> list[TopicPartition]:
        """Take a broker out of the in-sync replicas; the partitions for which that is done."""
        done: list[TopicPartition] = []
        remaining = partitions
        while remaining:
            current = await self._store.partition_states(remaining)
            shrunk = {}
            for partition, state in current.items():
                if state.controller_epoch > self._context.epoch:
                    logger.error("%s was changed by a newer controller", partition)
                elif broker in state.isr:
                    shrunk[partition] = self._without(broker, state)
                else:
                    self._context.leadership[partition] = self._ours(state)
                    done.append(partition)
            for partition in remaining:
                if partition not in current and not self._context.is_to_be_deleted(partition.topic):
                    logger.error("%s has no state in ZooKeeper", partition)
            writes = await self._fenced.update_partition_states(shrunk)
            for partition, error in writes.failed.items():
                logger.error("%s keeps broker %d in sync: %s", partition, broker, error)
            self._context.leadership |= writes.written
            done += writes.written
            remaining = writes.conflicts
        return done

    def _without(self, broker: int, state: LeaderAndIsr) -> LeaderAndIsr:
        """The last in-sync replica stays one: it alone has all the records."""
        leader = NO_LEADER if state.leader == broker else state.leader
        isr = state.isr
        if len(isr) > 1:
            isr = tuple(one for one in isr if one != broker)
        return self._ours(state.led_by(leader, isr))

    def _ours(self, state: LeaderAndIsr) -> LeaderAndIsr:
        return replace(state, controller_epoch=self._context.epoch)
