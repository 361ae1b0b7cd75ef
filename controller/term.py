"""One term of office: what a broker does between its election as controller and its resignation.

Owns the picture of the cluster, the state machines and the channels of this term, and reacts to
events, of which it is handed one at a time. Elections and sessions are controller.py's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from controller import events, znodes
from controller.channels import Channels, Send
from controller.cluster import BrokerInfo, Replica, TopicPartition
from controller.context import ControllerContext, PartitionState, ReplicaState
from controller.controlled_shutdown import shut_down_broker
from controller.fenced_store import FencedStore
from controller.metadata_store import ControllerMovedError, MetadataStore
from controller.notifications import Notifications
from controller.office import Office, Watches
from controller.partition_states import PartitionStateMachine
from controller.preferred_elections import RequestedElections
from controller.reassignment import Reassignments
from controller.replica_states import ReplicaStateMachine
from controller.request_batch import Enqueue, RequestBatch
from controller.topic_deletion import TopicDeletion
from controller.zookeeper import ZooKeeperError
from network.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

_FIRST_BALANCE_CHECK_SECONDS: Final = 5.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """The broker's settings that concern its controller.

    Topics are deleted only by brokers that serve StopReplica.
    """

    unclean_election: bool = False
    inter_broker_listener: str | None = None
    delete_topics: bool = False
    auto_balance: bool = True
    imbalance_percentage: int = 10
    balance_check_seconds: float = 300.0


class Term:
    """The active controller."""

    def __init__(
        self,
        controller_id: int,
        store: MetadataStore,
        fenced: FencedStore,
        send: Send,
        enqueue: Enqueue,
        options: ControllerOptions,
    ) -> None:
        self._options = options
        self._store = store
        self._channels = Channels(send)
        self.context = ControllerContext(epoch=fenced.term.epoch)
        batch = RequestBatch(
            controller_id, self.context, self._channels, enqueue, options.inter_broker_listener
        )
        self._office = Office(
            context=self.context,
            store=store,
            fenced=fenced,
            batch=batch,
            partitions=PartitionStateMachine(
                self.context, store, fenced, batch, unclean_election=options.unclean_election
            ),
            replicas=ReplicaStateMachine(self.context, store, fenced, batch),
            watches=Watches(store.client, enqueue),
            enqueue=enqueue,
        )
        self._partitions = self._office.partitions
        self._replicas = self._office.replicas
        self._watches = self._office.watches
        self._balance_timer: asyncio.TimerHandle | None = None
        self.notifications = Notifications(self._office)
        self.deletion = TopicDeletion(self._office, is_enabled=options.delete_topics)
        self.elections = RequestedElections(self._office)
        self.reassignments = Reassignments(self._office, self.deletion)

    async def begin(self) -> None:
        """Learn what there is, tell every broker its part, and have every partition led."""
        self._watches.children(znodes.BROKER_IDS, events.BrokersChanged())
        self._watches.children(znodes.TOPICS, events.TopicsChanged())
        await self.notifications.begin()
        await self._read_cluster()
        await self.deletion.begin()
        for broker in self.context.brokers.values():
            self._channels.open(broker)
        self._office.update_metadata(self.context.brokers)
        await self._replicas.start()
        await self._partitions.start()
        logger.info(
            "Ready to serve as the new controller with epoch %d: %d brokers, %d topics",
            self.context.epoch,
            len(self.context.brokers),
            len(self.context.assignments),
        )
        await self.reassignments.begin()
        await self.deletion.resume()
        await self.elections.begin()
        self._check_balance_in(_FIRST_BALANCE_CHECK_SECONDS)

    async def end(self) -> None:
        self._watches.clear()
        if self._balance_timer is not None:
            self._balance_timer.cancel()
        await self._channels.close_all()

    def _check_balance_in(self, seconds: float) -> None:
        if self._options.auto_balance:
            loop = asyncio.get_running_loop()
            put = self._office.enqueue
            self._balance_timer = loop.call_later(seconds, put, events.LeaderBalanceDue())

    async def _read_cluster(self) -> None:
        context = self.context
        context.brokers = await self._store.brokers()
        await self._watch_brokers(context.brokers)
        topics = await self._store.topics()
        self._watch_topics(topics)
        context.assignments = await self._store.assignments(sorted(topics))
        context.leadership = await self._store.partition_states(list(context.partitions()))
        context.being_reassigned = {
            one for one in context.partitions() if context.assignment(one).is_being_reassigned
        }

    def _watch_topics(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._watches.node(znodes.topic(topic), events.PartitionsModified(topic))

    async def _watch_brokers(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            self._watches.node(znodes.broker(broker), events.BrokerModified(broker))
            await self._store.client.exists(znodes.broker(broker))

    # -- brokers -----------------------------------------------------------------------------

    async def on_brokers_changed(self, _: events.BrokersChanged) -> None:
        registered = await self._store.brokers()
        known = self.context.brokers
        new = registered.keys() - known.keys()
        dead = known.keys() - registered.keys()
        bounced = {
            broker
            for broker in registered.keys() & known.keys()
            if registered[broker].epoch > known[broker].epoch
        }
        if not (new or dead or bounced):
            return
        logger.info(
            "Newly added brokers: %s, deleted brokers: %s, bounced brokers: %s, all live: %s",
            *(sorted(ids) for ids in (new, dead, bounced, registered)),
        )
        if new:
            await self._brokers_came([registered[one] for one in sorted(new)])
        if bounced:
            await self._brokers_went(bounced)
            await self._brokers_came([registered[one] for one in sorted(bounced)])
        if dead:
            await self._brokers_went(dead)

    async def on_broker_modified(self, event: events.BrokerModified) -> None:
        known = self.context.brokers.get(event.broker)
        now = await self._store.broker(event.broker)
        if known is None or now is None or now.epoch != known.epoch:
            return  # it came or went, of which there is an event of its own
        if now.endpoints != known.endpoints:
            self.context.brokers[event.broker] = now
            self._office.update_metadata(self.context.brokers)

    async def _brokers_came(self, brokers: Collection[BrokerInfo]) -> None:
        """Tell newcomers everything, the others of the newcomers, and give them their replicas."""
        context = self.context
        others = list(context.brokers)
        for broker in brokers:
            context.brokers[broker.id] = broker
            context.replicas_on_failed_disks.pop(broker.id, None)
            self._channels.open(broker)
        context.brokers = dict(sorted(context.brokers.items()))
        newcomers = [broker.id for broker in brokers]
        self._office.update_metadata(others)
        self._office.update_metadata(newcomers, context.leadership)
        await self._replicas.move(context.replicas_on(newcomers), ReplicaState.ONLINE)
        await self._partitions.bring_online()
        await self.reassignments.brokers_came(newcomers)
        await self._watch_brokers(newcomers)
        await self.deletion.release({one.partition.topic for one in context.replicas_on(newcomers)})

    async def _brokers_went(self, brokers: Collection[int]) -> None:
        context = self.context
        for broker in brokers:
            context.brokers.pop(broker, None)
            context.shutting_down.discard(broker)
            context.replicas_on_failed_disks.pop(broker, None)
            self._channels.close(broker)
            self._watches.remove(znodes.broker(broker))
        await self._replicas_went_offline(context.replicas_on(brokers))

    async def _replicas_went_offline(self, replicas: list[Replica]) -> None:
        """Find other leaders for what these have led, and take them out of sync."""
        context = self.context
        leaderless = [
            partition
            for partition, leadership in context.leadership.items()
            if not context.is_online(leadership.leader, partition)
            and not context.is_to_be_deleted(partition.topic)
        ]
        await self._partitions.move(leaderless, PartitionState.OFFLINE)
        await self._partitions.bring_online()
        staying = [one for one in replicas if not context.is_to_be_deleted(one.partition.topic)]
        await self._replicas.move(staying, ReplicaState.OFFLINE)
        await self.deletion.fail(replicas)
        if not leaderless:
            self._office.update_metadata(context.brokers)

    # -- topics ------------------------------------------------------------------------------

    async def on_topics_changed(self, _: events.TopicsChanged) -> None:
        topics = await self._store.topics()
        for topic in self.context.topics - topics:
            self._watches.remove(znodes.topic(topic))
            self.context.forget_topic(topic)
        new = topics - self.context.topics
        self._watch_topics(new)
        added = await self._store.assignments(sorted(new))
        self.context.assignments |= added
        partitions = [one for topic in added for one in self.context.partitions_of(topic)]
        if partitions:
            logger.info("New topics: %s, %d partitions", sorted(added), len(partitions))
            await self._partitions_came(partitions)

    async def on_partitions_modified(self, event: events.PartitionsModified) -> None:
        found = (await self._store.assignments([event.topic])).get(event.topic)
        known = self.context.assignments.get(event.topic)
        if found is None or known is None:
            return  # the topic came or went, of which there is an event of its own
        added = {number: one for number, one in found.items() if number not in known}
        if added and self.context.is_to_be_deleted(event.topic):
            logger.warning("%s is being deleted: it gets no more partitions", event.topic)
            await self._office.fenced.set_assignment(event.topic, known)
        elif added:
            logger.info("New partitions of %s: %s", event.topic, sorted(added))
            known |= added
            await self._partitions_came([TopicPartition(event.topic, number) for number in added])

    async def _partitions_came(self, partitions: list[TopicPartition]) -> None:
        replicas = self.context.replicas(partitions)
        await self._partitions.move(partitions, PartitionState.NEW)
        await self._replicas.move(replicas, ReplicaState.NEW)
        await self._partitions.move(partitions, PartitionState.ONLINE)
        await self._replicas.move(replicas, ReplicaState.ONLINE)

    # -- requests ----------------------------------------------------------------------------

    async def on_controlled_shutdown(self, event: events.ControlledShutdownRequested) -> None:
        await _answer(
            event.answer, shut_down_broker(self._office, event.broker, event.broker_epoch)
        )

    async def on_election_requested(self, event: events.ElectionRequested) -> None:
        await _answer(event.answer, self.elections.elect(event.partitions, event.strategy))

    async def on_reassignment_requested(self, event: events.ReassignmentRequested) -> None:
        await _answer(event.answer, self.reassignments.alter(event.targets))

    async def on_reassignments_asked(self, event: events.ReassignmentsAsked) -> None:
        if not event.answer.done():
            event.answer.set_result(self.reassignments.ongoing(event.partitions))

    async def on_unclean_election_set(self, event: events.UncleanElectionSet) -> None:
        self._partitions.unclean_election = event.allowed
        if event.allowed:
            await self._partitions.bring_online()

    async def on_unclean_election_enabled_in(self, event: events.UncleanElectionEnabledIn) -> None:
        await self._partitions.bring_online(event.topic)

    async def on_balance_due(self, _: events.LeaderBalanceDue) -> None:
        try:
            await self.elections.balance(self._options.imbalance_percentage)
        finally:
            self._check_balance_in(self._options.balance_check_seconds)

    # -- answers of brokers ------------------------------------------------------------------

    async def on_update_metadata_answered(self, event: events.UpdateMetadataAnswered) -> None:
        if event.response.error_code != ErrorCode.NONE:
            code = ErrorCode(event.response.error_code)
            logger.error("broker %d refused UpdateMetadata: %s", event.broker, code.name)

    async def on_leader_and_isr_answered(self, event: events.LeaderAndIsrAnswered) -> None:
        """Replicas on a disk that failed are offline; those that answer well are not any more."""
        response, broker = event.response, event.broker
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode(response.error_code)
            logger.error("broker %d refused LeaderAndIsr: %s", broker, code.name)
            return
        codes = {
            TopicPartition(one.topic_name, one.partition_index): one.error_code
            for one in response.partition_errors
        }
        failed = {one for one, code in codes.items() if code == ErrorCode.KAFKA_STORAGE_ERROR}
        well = {one for one, code in codes.items() if code == ErrorCode.NONE}
        before = self.context.replicas_on_failed_disks.get(broker, set())
        now = (before - well) | failed
        if now:
            self.context.replicas_on_failed_disks[broker] = now
        else:
            self.context.replicas_on_failed_disks.pop(broker, None)
        if now - before:
            logger.warning("broker %d has lost the replicas of %s", broker, sorted(now - before))
            await self._replicas_went_offline([Replica(one, broker) for one in now - before])


async def _answer(future: asyncio.Future[T], work: Awaitable[T]) -> None:
    """Pass on what became of the work; what ends the term ends it here too."""
    try:
        result = await work
    except asyncio.CancelledError:
        future.cancel()
        raise
    except (ControllerMovedError, ZooKeeperError) as error:
        if not future.done():
            future.set_exception(ControllerMovedError(str(error)))
        raise
    except Exception as error:
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)
