"""Deletion of topics: every replica is stopped and removed, then the topic's znodes.

    wanted (/admin/delete_topics/T) -> partitions offline and gone, all brokers told
        -> replicas OFFLINE -> DELETION_STARTED -> brokers answer -> DELETION_SUCCESSFUL
        -> all of them successful: znodes removed, topic forgotten

A topic with a replica on a dead broker waits until that broker is back.
"""

import logging
from collections.abc import Collection, Iterable

from controller import events, znodes
from controller.cluster import Replica, TopicPartition
from controller.context import PartitionState, ReplicaState
from controller.office import Office
from network.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


class TopicDeletion:
    """Brings the deletion of topics to an end, over failures and changes of the controller."""

    def __init__(self, office: Office, *, is_enabled: bool) -> None:
        self._office = office
        self._context = office.context
        self._is_enabled = is_enabled

    async def begin(self) -> None:
        """Learn what is to be deleted, before the state machines start."""
        self._office.watches.children(znodes.DELETE_TOPICS, events.TopicDeletionsChanged())
        wanted = await self._office.store.topics_to_delete()
        if not self._is_enabled:
            await self._office.fenced.forget_deletions(wanted)
            return
        self._context.topics_to_delete = wanted & self._context.topics
        self._context.topics_not_to_delete_yet = {
            topic for topic in self._context.topics_to_delete if not self._may_delete(topic)
        }

    async def on_wanted(self, _: events.TopicDeletionsChanged) -> None:
        wanted = await self._office.store.topics_to_delete()
        known = wanted & self._context.topics
        if not self._is_enabled and wanted:
            logger.info("Topics are not deleted here: %s stay", sorted(wanted))
            known = set()
        await self._office.fenced.forget_deletions(wanted - known)
        new = known - self._context.topics_to_delete
        if new:
            logger.info("Starting topic deletion for topics %s", sorted(new))
            self._context.topics_to_delete |= new
            self._context.topics_not_to_delete_yet |= {
                one for one in new if self._is_being_reassigned(one)
            }
        await self.resume()

    async def on_stop_replica_answered(self, event: events.StopReplicaAnswered) -> None:
        failed: list[Replica] = []
        deleted: list[Replica] = []
        for one in event.response.partition_errors:
            if one.topic_name in self._context.topics_being_deleted:
                replica = Replica(TopicPartition(one.topic_name, one.partition_index), event.broker)
                well = event.response.error_code == one.error_code == ErrorCode.NONE
                (deleted if well else failed).append(replica)
        await self.fail(failed)
        if deleted:
            await self._office.replicas.move(deleted, ReplicaState.DELETION_SUCCESSFUL)
            await self.resume()

    async def fail(self, replicas: Iterable[Replica]) -> None:
        """Replicas that can't be deleted for now keep their topics waiting."""
        failed = [one for one in replicas if self._context.is_to_be_deleted(one.partition.topic)]
        if failed:
            await self._make_ineligible(failed)
            self.hold({replica.partition.topic for replica in failed})
            await self.resume()

    async def _make_ineligible(self, replicas: Iterable[Replica]) -> None:
        by_state: dict[ReplicaState, list[Replica]] = {}
        for replica in replicas:
            by_state.setdefault(self._context.replica_state(replica), []).append(replica)
        serving = by_state.get(ReplicaState.ONLINE, []) + by_state.get(ReplicaState.NEW, [])
        stopped = by_state.get(ReplicaState.OFFLINE, [])
        stopped += by_state.get(ReplicaState.DELETION_STARTED, [])
        await self._office.replicas.move(serving, ReplicaState.OFFLINE)
        await self._office.replicas.move(serving + stopped, ReplicaState.DELETION_INELIGIBLE)

    def hold(self, topics: Collection[str]) -> None:
        held = self._context.topics_to_delete & set(topics)
        self._context.topics_not_to_delete_yet |= held
        if held:
            logger.info("Halted deletion of topics %s", sorted(held))

    async def release(self, topics: Collection[str]) -> None:
        """What kept topics from being deleted is over."""
        released = self._context.topics_to_delete & set(topics)
        if released:
            self._context.topics_not_to_delete_yet -= released
            await self.resume()

    async def resume(self) -> None:
        """Take every topic one step further that can go one."""
        to_retry: list[Replica] = []
        to_start: list[str] = []
        for topic in sorted(self._context.topics_to_delete):
            replicas = self._context.replicas(self._context.partitions_of(topic))
            states = {self._context.replica_state(one) for one in replicas}
            if states <= {ReplicaState.DELETION_SUCCESSFUL}:
                await self._complete(topic)
            elif ReplicaState.DELETION_STARTED not in states:
                to_retry += self._context.replicas_in(topic, ReplicaState.DELETION_INELIGIBLE)
                if topic not in self._context.topics_not_to_delete_yet:
                    to_start.append(topic)
        if to_retry:
            await self._office.replicas.move(to_retry, ReplicaState.OFFLINE)
        if to_start:
            await self._start(to_start)

    async def _start(self, topics: list[str]) -> None:
        unseen = [one for one in topics if one not in self._context.topics_being_deleted]
        partitions = [one for topic in unseen for one in self._context.partitions_of(topic)]
        await self._office.partitions.move(partitions, PartitionState.OFFLINE)
        await self._office.partitions.move(partitions, PartitionState.NON_EXISTENT)
        self._context.topics_being_deleted.update(unseen)
        gone = [one for topic in topics for one in self._context.partitions_of(topic)]
        self._office.update_metadata(self._context.brokers, gone)
        await self._delete_replicas(topics)

    async def _delete_replicas(self, topics: list[str]) -> None:
        dead: list[Replica] = []
        alive: list[Replica] = []
        for topic in topics:
            for replica in self._context.replicas(self._context.partitions_of(topic)):
                if not self._context.is_online(replica.broker, replica.partition):
                    dead.append(replica)
                elif self._context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                    alive.append(replica)
        await self._make_ineligible(dead)
        await self._office.replicas.move(alive, ReplicaState.OFFLINE)
        await self._office.replicas.move(alive, ReplicaState.DELETION_STARTED)
        self.hold({replica.partition.topic for replica in dead})

    async def _complete(self, topic: str) -> None:
        self._office.watches.remove(znodes.topic(topic))
        await self._office.fenced.delete_topic(topic)
        self._context.topics_to_delete.discard(topic)
        self._context.topics_being_deleted.discard(topic)
        self._context.topics_not_to_delete_yet.discard(topic)
        self._context.forget_topic(topic)
        logger.info("Deletion of topic %s successfully completed", topic)

    def _may_delete(self, topic: str) -> bool:
        replicas = self._context.replicas(self._context.partitions_of(topic))
        return not self._is_being_reassigned(topic) and all(
            self._context.is_online(one.broker, one.partition) for one in replicas
        )

    def _is_being_reassigned(self, topic: str) -> bool:
        return any(one.topic == topic for one in self._context.being_reassigned)
