"""Moves partitions to other brokers: by request, or by /admin/reassign_partitions as of old.

    target written to the topic's znode with what is added and removed; both survive a controller
        -> not all of the target in sync: the replicas learn of the newcomers, which start
        -> a change of the in-sync replicas makes the whole target in sync
        -> leader within the target, old replicas stopped and deleted, plain assignment written

Each step can be taken again from what ZooKeeper says, so a new controller goes on where the last
one stopped. While a partition moves, its topic is not deleted.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from controller import events, znodes
from controller.cluster import LeaderAndIsr, Replica, ReplicaAssignment, TopicPartition
from controller.context import PartitionState, ReplicaState
from controller.elections import Strategy
from controller.metadata_store import ControllerMovedError
from controller.office import Office
from controller.topic_deletion import TopicDeletion
from controller.zookeeper import NoNodeError, SessionExpiredError
from network.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


class Verdict(NamedTuple):
    """What became of the wish to move one partition."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


Targets = Mapping[TopicPartition, tuple[int, ...] | None]
Verdicts = dict[TopicPartition, Verdict]

_NOT_MOVING: Final = Verdict(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
_UNKNOWN: Final = Verdict(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
_FAILED: Final = Verdict(ErrorCode.UNKNOWN_SERVER_ERROR)


class ReassignmentFailedError(Exception):
    """A partition can't be moved as things are."""


class Reassignments:
    """Partitions on their way to other brokers."""

    def __init__(self, office: Office, deletion: TopicDeletion) -> None:
        self._office = office
        self._context = office.context
        self._deletion = deletion
        self._handled_node: int | None = None

    async def begin(self) -> None:
        """Go on with what an earlier controller began; a wish by znode comes before it."""
        self._office.watches.node(znodes.REASSIGN_PARTITIONS, events.ReassignmentRequestedByZnode())
        by_znode = await self._handle_node()
        await self._resume(one for one in self._context.being_reassigned if one not in by_znode)

    async def on_znode(self, _: events.ReassignmentRequestedByZnode) -> None:
        await self._handle_node()

    async def on_in_sync_changed(self, event: events.MovingPartitionChanged) -> None:
        partition = event.partition
        if partition in self._context.being_reassigned:
            assignment = self._context.assignment(partition)
            if await self._is_complete(partition, assignment):
                logger.info("%s is in sync on %s", partition, assignment.target)
                await self._move(partition, assignment)

    async def brokers_came(self, brokers: Collection[int]) -> None:
        await self._resume(
            one
            for one in self._context.being_reassigned
            if any(broker in brokers for broker in self._context.assignment(one).target)
        )

    async def alter(self, targets: Targets) -> Verdicts:
        """Move partitions to their targets, or where there is none, back to where they were."""
        verdicts: Verdicts = {}
        moves: dict[TopicPartition, ReplicaAssignment] = {}
        for partition, target in targets.items():
            verdict = self._objection(partition, target)
            assignment = self._next_assignment(partition, target)
            if verdict is not None:
                verdicts[partition] = verdict
            elif assignment is None:
                verdicts[partition] = _NOT_MOVING
            else:
                moves[partition] = assignment
        # The latest wish counts, whichever way it came.
        await self._remove_from_node(lambda partition, _: partition in moves)
        return verdicts | await self._begin_moves(moves)

    def ongoing(
        self, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """Those of the partitions, or of all, that are on their way."""
        wanted = self._context.being_reassigned if partitions is None else partitions
        found = {one: self._context.assignment(one) for one in sorted(wanted)}
        return {one: where for one, where in found.items() if where.is_being_reassigned}

    # -- wishes ------------------------------------------------------------------------------

    def _objection(
        self, partition: TopicPartition, target: tuple[int, ...] | None
    ) -> Verdict | None:
        if target is None:
            return None
        problem = None
        if not target:
            problem = "Empty replica list specified in partition reassignment."
        elif len(set(target)) != len(target):
            problem = f"A broker is named twice among the replicas {list(target)}."
        elif min(target) < 0:
            problem = f"Invalid broker id among the replicas {list(target)}."
        else:
            adding = self._context.assignment(partition).reassigned_to(target).adding
            live = self._context.live_brokers
            if not live.issuperset(adding):
                problem = (
                    "Replica assignment has brokers that are not alive."
                    f" New replicas: {list(adding)}, live brokers: {sorted(live)}"
                )
        return None if problem is None else Verdict(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)

    def _next_assignment(
        self, partition: TopicPartition, target: tuple[int, ...] | None
    ) -> ReplicaAssignment | None:
        """What a wish makes of a partition; None if it ends a move where there is none."""
        current = self._context.assignment(partition)
        if target is None and not current.is_being_reassigned:
            return None
        return current.reassigned_to(current.origin if target is None else target)

    async def _begin_moves(self, moves: Mapping[TopicPartition, ReplicaAssignment]) -> Verdicts:
        return {
            partition: await self._begin_move(partition, assignment)
            for partition, assignment in moves.items()
        }

    async def _begin_move(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> Verdict:
        exists = bool(self._context.assignment(partition).replicas)
        if not exists or self._context.is_to_be_deleted(partition.topic):
            return _UNKNOWN
        return await self._try_to_move(partition, assignment)

    async def _try_to_move(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> Verdict:
        try:
            await self._move(partition, assignment)
        except (ControllerMovedError, SessionExpiredError):
            raise
        except Exception:
            logger.exception("%s can't be moved to %s", partition, assignment.target)
            return _FAILED
        return Verdict()

    async def _resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            await self._try_to_move(partition, self._context.assignment(partition))

    # -- one partition -----------------------------------------------------------------------

    async def _move(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """As far as it goes now: to its end if the target is in sync, else to its beginning."""
        self._deletion.hold({partition.topic})
        await self._update_target(partition, assignment)
        if await self._is_complete(partition, assignment):
            await self._complete(partition, assignment)
        else:
            await self._start_new_replicas(partition, assignment)

    async def _update_target(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        current = self._context.assignment(partition)
        # Before anything reads the state: the reading arms the watch.
        self._office.watches.node(
            znodes.partition_state(partition), events.MovingPartitionChanged(partition)
        )
        if current != assignment:
            await self._write_assignment(partition, assignment)
            self._context.assign(partition, assignment)
            unneeded = [one for one in current.replicas if one not in assignment.replicas]
            await self._remove_replicas(partition, unneeded)
        self._context.being_reassigned.add(partition)

    async def _start_new_replicas(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        await self._announce(partition, assignment)
        newcomers = (Replica(partition, broker) for broker in assignment.adding)
        unseen = [
            one
            for one in newcomers
            if self._context.replica_state(one) is ReplicaState.NON_EXISTENT
        ]
        await self._office.replicas.move(unseen, ReplicaState.NEW)

    async def _complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        newcomers = [Replica(partition, broker) for broker in assignment.adding]
        await self._office.replicas.move(newcomers, ReplicaState.ONLINE)
        final = ReplicaAssignment(assignment.target)
        self._context.assign(partition, final)
        await self._move_leader(partition, final)
        await self._remove_replicas(partition, assignment.removing)
        if assignment.is_being_reassigned:
            await self._write_assignment(partition, final)
        self._office.watches.remove(znodes.partition_state(partition))
        await self._remove_from_node(
            lambda one, target: one == partition and target == final.replicas
        )
        self._context.being_reassigned.discard(partition)
        self._office.update_metadata(self._context.brokers, [partition])
        logger.info("%s is on %s", partition, final.replicas)
        await self._deletion.release({partition.topic})

    async def _is_complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
        if not assignment.is_being_reassigned:
            return True
        state = (await self._office.store.partition_states([partition])).get(partition)
        return state is not None and set(assignment.target) <= set(state.isr)

    async def _move_leader(self, partition: TopicPartition, final: ReplicaAssignment) -> None:
        """Tell the replicas of the final assignment; one of them must lead."""
        leader = self._context.leadership[partition].leader
        if leader in final.replicas and self._context.is_online(leader, partition):
            await self._announce(partition, final)
        else:
            await self._office.partitions.move(
                [partition], PartitionState.ONLINE, Strategy.REASSIGNMENT
            )

    async def _remove_replicas(self, partition: TopicPartition, brokers: Iterable[int]) -> None:
        """Out of sync, stopped, deleted; whether the broker has done so is not waited for."""
        replicas = [Replica(partition, broker) for broker in brokers]
        for state in (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        ):
            await self._office.replicas.move(replicas, state)

    async def _announce(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Tell the replicas of the assignment; a higher leader epoch makes them listen."""
        self._context.leadership[partition] = await self._raise_leader_epoch(partition)
        self._office.batch.add_leader_and_isr(assignment.replicas, partition, is_new=False)
        self._office.batch.send()

    async def _raise_leader_epoch(self, partition: TopicPartition) -> LeaderAndIsr:
        while True:
            state = (await self._office.store.partition_states([partition])).get(partition)
            if state is None:
                raise ReassignmentFailedError(f"{partition} has never had a leader")
            if state.controller_epoch > self._context.epoch:
                raise ReassignmentFailedError(
                    f"a controller of epoch {state.controller_epoch} has changed {partition}"
                )
            raised = replace(state.led_by(state.leader), controller_epoch=self._context.epoch)
            writes = await self._office.fenced.update_partition_states({partition: raised})
            if partition in writes.failed:
                raise writes.failed[partition]
            if partition in writes.written:
                return writes.written[partition]

    async def _write_assignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        known = self._context.assignments[partition.topic]
        changed = {**known, partition.partition: assignment}
        await self._office.fenced.set_assignment(partition.topic, changed)

    # -- /admin/reassign_partitions ------------------------------------------------------------

    async def _handle_node(self) -> set[TopicPartition]:
        """Begin what a new node asks for; those of its partitions that are on their way."""
        client = self._office.store.client
        stat = await client.exists(znodes.REASSIGN_PARTITIONS)
        if stat is None or stat.czxid == self._handled_node:
            return set()
        self._handled_node = stat.czxid
        targets = await self._node_targets()
        moves = {
            partition: self._context.assignment(partition).reassigned_to(target)
            for partition, target in targets.items()
        }
        verdicts = await self._begin_moves(moves)
        failed = {one for one, verdict in verdicts.items() if verdict.code != ErrorCode.NONE}
        if failed:
            logger.warning("Can't be moved: %s", {str(one): verdicts[one] for one in failed})
            await self._remove_from_node(lambda partition, _: partition in failed)
        return moves.keys() - failed

    async def _node_targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        try:
            node = await self._office.store.client.get(znodes.REASSIGN_PARTITIONS)
            return znodes.decode_reassignment(node.data)
        except NoNodeError:
            return {}
        except znodes.MalformedNodeError as error:
            logger.warning("Ignoring a reassignment that can't be read: %s", error)
            return {}

    async def _remove_from_node(
        self, is_done: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Take partitions out of the node; with the last one it goes itself."""
        targets = await self._node_targets()
        left = {one: target for one, target in targets.items() if not is_done(one, target)}
        if targets and not left:
            await self._office.fenced.delete_nodes([znodes.REASSIGN_PARTITIONS])
        elif left != targets:
            data = znodes.encode_reassignment(left)
            await self._office.fenced.set_or_create(znodes.REASSIGN_PARTITIONS, data)
