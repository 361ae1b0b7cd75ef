"""Creating and deleting topics: checks, replica assignment, and the write to ZooKeeper.

The controller notices by its own watches; nobody calls it from here.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.failures import ApiError
from broker.metadata_cache import MetadataCache
from broker.purgatory import Purgatory
from broker.settings import Settings, SettingsError, TopicSettings
from broker.timing_wheel import TimingWheel
from broker.topic_names import check_collision, check_name, is_internal
from controller.assignment import (
    BrokerRack,
    InvalidAssignmentError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    assign_replicas,
)
from controller.metadata_store import MetadataStore, TopicExistsError
from network.protocol import ErrorCode

logger = logging.getLogger(__name__)

USE_DEFAULT = -1

ASSIGNMENT_FAILURES: dict[type[InvalidAssignmentError], ErrorCode] = {
    InvalidAssignmentError: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    InvalidPartitionsError: ErrorCode.INVALID_PARTITIONS,
    InvalidReplicationFactorError: ErrorCode.INVALID_REPLICATION_FACTOR,
}

Assignment = Mapping[int, Sequence[int]]


@dataclass(slots=True)
class NewTopic:
    """A topic that somebody wants."""

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignment: Assignment = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CreatedTopic:
    """A topic that has been written, or would have been."""

    name: str
    assignment: Assignment
    settings: TopicSettings


class TopicAdmin:
    """Writes what clients want of topics to ZooKeeper."""

    def __init__(
        self,
        settings: Settings,
        store: MetadataStore,
        metadata: MetadataCache,
        timers: TimingWheel,
    ) -> None:
        self.delayed_operations: Purgatory[Any] = Purgatory(timers)
        self._settings = settings
        self._store = store
        self._metadata = metadata
        metadata.on_topic_changed(self.delayed_operations.check)

    async def create(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Check a topic and, unless only asked to check, write it. Raises ApiError."""
        if topic.name in self._metadata:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        settings = self._topic_settings(topic.config)
        assignment = self._assignment(topic)
        check_name(topic.name)
        existing = await self._store.topics()
        if topic.name in existing:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        check_collision(topic.name, existing)
        _check_assignment(assignment)
        if not validate_only:
            await self._write(topic, assignment)
        return CreatedTopic(topic.name, assignment, settings)

    async def delete(self, topic: str) -> None:
        """Have the controller delete a topic; it is gone when the metadata cache says so."""
        await self._store.mark_for_deletion(topic)

    async def auto_create(self, topic: str, *, allowed: bool) -> ErrorCode:
        """What Metadata says of a topic that is not there, after creating it where it may."""
        if is_internal(topic) or not (allowed and self._settings.auto_create_topics_enable):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            await self.create(NewTopic(topic))
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                return error.code
        return ErrorCode.LEADER_NOT_AVAILABLE

    def _topic_settings(self, config: Mapping[str, str]) -> TopicSettings:
        try:
            return TopicSettings(self._settings, config)
        except SettingsError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None

    def _assignment(self, topic: NewTopic) -> Assignment:
        if topic.assignment:
            if (topic.partitions, topic.replication_factor) != (USE_DEFAULT, USE_DEFAULT):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "Give either replica assignments, or numbers of partitions and replicas",
                )
            return topic.assignment
        partitions, replicas = topic.partitions, topic.replication_factor
        if partitions == USE_DEFAULT:
            partitions = self._settings.num_partitions
        if replicas == USE_DEFAULT:
            replicas = self._settings.default_replication_factor
        try:
            return assign_replicas(self._live_brokers(), partitions, replicas)
        except InvalidAssignmentError as error:
            raise ApiError(ASSIGNMENT_FAILURES[type(error)], str(error)) from None

    def _live_brokers(self) -> list[BrokerRack]:
        """With their racks, if every one of them has one."""
        live = [BrokerRack(one.id, one.rack) for one in self._metadata.brokers.values()]
        if any(one.rack is None for one in live):
            live = [BrokerRack(one.id) for one in live]
        return sorted(live, key=lambda one: one.id)

    async def _write(self, topic: NewTopic, assignment: Assignment) -> None:
        try:
            await self._store.create_topic(topic.name, assignment, topic.config)
        except TopicExistsError:
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists."
            ) from None
        logger.info("Created topic %s with %d partitions", topic.name, len(assignment))


def _check_assignment(assignment: Assignment) -> None:
    problem = None
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        problem = "All partitions should have the same number of replicas"
    elif any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        problem = "A partition names the same replica twice"
    elif sorted(assignment) != list(range(len(assignment))):
        problem = "Partitions must be numbered 0, 1, 2 and so on"
    elif any(broker < 0 for replicas in assignment.values() for broker in replicas):
        problem = "Broker ids are not negative"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
