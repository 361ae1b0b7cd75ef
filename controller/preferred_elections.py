"""Elections that are held on request or for balance, not because a leader is gone."""

import logging
from collections.abc import Collection

from controller import events, znodes
from controller.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from controller.context import PartitionState
from controller.elections import ElectionFailedError, ElectionResults, Strategy
from controller.office import Office
from controller.zookeeper import NoNodeError

logger = logging.getLogger(__name__)


class ElectionNotNeededError(ElectionFailedError):
    """The partition is led as it should be."""


class UnknownPartitionError(ElectionFailedError):
    """There is no such partition."""


class TopicDeletedError(ElectionFailedError):
    """The partition's topic is being deleted."""


class RequestedElections:
    """Elections by /admin/preferred_replica_election, by API, and for balance."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def begin(self) -> None:
        self._office.watches.node(znodes.PREFERRED_ELECTION, events.PreferredElectionRequested())
        await self.on_requested(events.PreferredElectionRequested())

    async def on_requested(self, _: events.PreferredElectionRequested) -> None:
        """What the znode asks for; the node goes when it is done."""
        client = self._office.store.client
        await client.exists(znodes.PREFERRED_ELECTION)
        try:
            node = await client.get(znodes.PREFERRED_ELECTION)
        except NoNodeError:
            return
        try:
            partitions = znodes.decode_preferred_election(node.data)
        except znodes.MalformedNodeError as error:
            logger.warning("Ignoring an election that can't be read: %s", error)
            partitions = set()
        logger.info("Preferred leaders are wanted for %d partitions", len(partitions))
        await self.elect(partitions, Strategy.PREFERRED)
        await self._office.fenced.delete_nodes([znodes.PREFERRED_ELECTION])

    async def elect(
        self, partitions: Collection[TopicPartition] | None, strategy: Strategy
    ) -> ElectionResults:
        """Elect leaders for the partitions, or for all; says of each what became of it."""
        results: ElectionResults = {}
        electable = []
        for partition in self._office.context.partitions() if partitions is None else partitions:
            objection = self._objection(partition, strategy)
            if objection is None:
                electable.append(partition)
            else:
                results[partition] = objection
        elected = await self._office.partitions.move(electable, PartitionState.ONLINE, strategy)
        return results | elected

    def _objection(
        self, partition: TopicPartition, strategy: Strategy
    ) -> ElectionFailedError | None:
        context = self._office.context
        replicas = context.assignment(partition).replicas
        state = context.leadership.get(partition)
        if not replicas or state is None:
            return UnknownPartitionError("The partition does not exist.")
        if context.is_to_be_deleted(partition.topic):
            return TopicDeletedError("The topic is being deleted")
        if strategy is Strategy.PREFERRED:
            is_needed = state.leader != replicas[0]
        else:
            is_needed = state.leader == NO_LEADER or state.leader not in context.live_brokers
        return None if is_needed else ElectionNotNeededError("it is led as it should be")

    async def balance(self, tolerated_percentage: int) -> None:
        """Give brokers back what they should lead, where they lead too little of it."""
        context = self._office.context
        preferred: dict[int, list[TopicPartition]] = {}
        for partition in context.partitions():
            replicas = context.assignment(partition).replicas
            if replicas and not context.is_to_be_deleted(partition.topic):
                preferred.setdefault(replicas[0], []).append(partition)
        for broker, partitions in preferred.items():
            astray = [one for one in partitions if self._is_led_by_another(one, broker)]
            if len(astray) * 100 > tolerated_percentage * len(partitions):
                movable = [one for one in astray if context.is_online(broker, one)]
                if movable and not context.being_reassigned:
                    logger.info("Giving broker %d the lead of %d partitions", broker, len(movable))
                    await self.elect(movable, Strategy.PREFERRED)

    def _is_led_by_another(self, partition: TopicPartition, broker: int) -> bool:
        state: LeaderAndIsr | None = self._office.context.leadership.get(partition)
        return state is not None and state.leader != broker
