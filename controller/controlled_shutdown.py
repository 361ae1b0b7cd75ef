"""A broker that is about to stop hands its leadership over first."""

import logging

from controller.cluster import UNKNOWN_BROKER_EPOCH, Replica, TopicPartition
from controller.context import PartitionState, ReplicaState
from controller.elections import Strategy
from controller.office import Office

logger = logging.getLogger(__name__)


class StaleBrokerEpochError(Exception):
    """The request is of an earlier life of the broker."""


class BrokerNotAvailableError(Exception):
    """No broker of this id is registered."""


async def shut_down_broker(office: Office, broker: int, broker_epoch: int) -> set[TopicPartition]:
    """Move leadership away from a broker; the answer is what it leads still."""
    context = office.context
    registered = context.brokers.get(broker)
    if registered is None:
        raise BrokerNotAvailableError(f"Broker id {broker} does not exist.")
    if UNKNOWN_BROKER_EPOCH != broker_epoch < registered.epoch:
        raise StaleBrokerEpochError(
            f"broker {broker} is registered with epoch {registered.epoch}, not {broker_epoch}"
        )
    logger.info("Shutting down broker %d", broker)
    context.shutting_down.add(broker)
    replicated = [
        one.partition
        for one in context.replicas_on({broker})
        if one.partition in context.leadership and _has_others(office, one.partition)
    ]
    led = [one for one in replicated if context.leadership[one].leader == broker]
    followed = [one for one in replicated if context.leadership[one].leader != broker]
    await office.partitions.move(led, PartitionState.ONLINE, Strategy.CONTROLLED_SHUTDOWN)
    await office.replicas.move([Replica(one, broker) for one in followed], ReplicaState.OFFLINE)
    return {
        partition
        for partition, state in context.leadership.items()
        if state.leader == broker and _has_others(office, partition)
    }


def _has_others(office: Office, partition: TopicPartition) -> bool:
    """Whether a partition has several replicas, and will still be there tomorrow."""
    context = office.context
    return len(context.assignment(partition).replicas) > 1 and not context.is_to_be_deleted(
        partition.topic
    )
