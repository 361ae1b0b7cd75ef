"""Creating and deleting topics: checks, replica assignment, and the write to ZooKeeper.

The controller notices by its own watches; nobody calls it from here.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from broker.failures import ApiError
from broker.internal_topics import internal_topic
from broker.metadata_cache import MetadataCache
from broker.new_partitions import Assignments, extended
from broker.purgatory import Purgatory
from broker.settings import Settings, SettingsError, TopicSettings
from broker.timing_wheel import TimingWheel
from broker.topic_names import check_collision, check_name, is_internal
from broker.wanted_topics import USE_DEFAULT, Assignment, NewTopic
from controller.assignment import (
    BrokerRack,
    InvalidAssignmentError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    assign_replicas,
)
from controller.metadata_store import MetadataStore, TopicExistsError
from network.protocol import ErrorCode

__all__ = ["Assignment", "CreatedTopic", "NewTopic", "TopicAdmin"]

logger = logging.getLogger(__name__)

ASSIGNMENT_FAILURES: dict[type[InvalidAssignmentError], ErrorCode] = {
    # Some brokers have a rack and some have none: Kafka has no code for it.
    InvalidAssignmentError: ErrorCode.UNKNOWN_SERVER_ERROR,
    InvalidPartitionsError: ErrorCode.INVALID_PARTITIONS,
    InvalidReplicationFactorError: ErrorCode.INVALID_REPLICATION_FACTOR,
}


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

    async def create(
        self, topic: NewTopic, *, validate_only: bool = False, insist_on_racks: bool = True
    ) -> CreatedTopic:
        """Check a topic and, unless only asked to check, write it. Raises ApiError.

        Where only some brokers have a rack, racks are an error or, if not insisted on, ignored.
        """
        if topic.name in self._metadata:
            raise _exists(topic.name)
        settings = self._topic_settings(topic.config)
        assignment = self._assignment(topic, insist_on_racks)
        check_name(topic.name)
        existing = await self._store.topics()
        if topic.name in existing:
            raise _exists(topic.name)
        check_collision(topic.name, existing)
        _check_assignment(assignment)
        if not validate_only:
            await self._write(topic.name, assignment, settings.overrides)
        return CreatedTopic(topic.name, assignment, settings)

    async def add_partitions(
        self,
        topic: str,
        wanted: int,
        assignments: Assignments | None = None,
        *,
        validate_only: bool = False,
    ) -> Collection[int]:
        """Give a topic more partitions; all it has then, or would have. Raises ApiError."""
        registered = await self._store.brokers()
        brokers = [BrokerRack(one.id, one.rack) for one in registered.values()]
        existing = (await self._store.assignments([topic])).get(topic, {})
        try:
            assignment = extended(topic, existing, wanted, brokers, assignments)
        except InvalidAssignmentError as error:
            raise ApiError(ASSIGNMENT_FAILURES[type(error)], str(error)) from None
        if not validate_only:
            await self._store.set_assignment(topic, assignment)
            logger.info("Gave topic %s %d partitions", topic, len(assignment))
        return assignment

    async def delete(self, topic: str) -> None:
        """Have the controller delete a topic; it is gone when the metadata cache says so."""
        if topic not in await self._store.topics():
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await self._store.mark_for_deletion(topic)

    async def auto_create(self, topic: str, *, allowed: bool) -> ErrorCode:
        """What Metadata says of a topic that is not there, after creating it where it may."""
        if is_internal(topic):
            code = await self.create_internal(topic)
            is_short_of_brokers = code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            return ErrorCode.INVALID_REPLICATION_FACTOR if is_short_of_brokers else code
        if not (allowed and self._settings.auto_create_topics_enable):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return await self._create_unasked(NewTopic(topic))

    async def create_internal(self, topic: str) -> ErrorCode:
        """Create one of the broker's own topics, if there are brokers enough for it.

        LEADER_NOT_AVAILABLE says that it is there, or will be at once; COORDINATOR_NOT_AVAILABLE
        that brokers are missing.
        """
        wanted = internal_topic(topic, self._settings)
        alive = len(self._metadata.brokers)
        if alive < wanted.replication_factor:
            logger.error(
                "%s is to have %d replicas, but only %d brokers are alive; which is as it should"
                " be while a cluster starts",
                topic,
                wanted.replication_factor,
                alive,
            )
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return await self._create_unasked(wanted)

    async def _create_unasked(self, topic: NewTopic) -> ErrorCode:
        try:
            await self.create(topic, insist_on_racks=False)
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                return error.code
        return ErrorCode.LEADER_NOT_AVAILABLE

    def _topic_settings(self, config: Mapping[str, str | None]) -> TopicSettings:
        valueless = [name for name, value in config.items() if value is None]
        if valueless:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"There is no value for {valueless[0]}")
        given = {name: value for name, value in config.items() if value is not None}
        try:
            return TopicSettings(self._settings, given)
        except SettingsError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None

    def _assignment(self, topic: NewTopic, insist_on_racks: bool) -> Assignment:
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
            return assign_replicas(self._live_brokers(insist_on_racks), partitions, replicas)
        except InvalidAssignmentError as error:
            raise ApiError(ASSIGNMENT_FAILURES[type(error)], str(error)) from None

    def _live_brokers(self, insist_on_racks: bool) -> list[BrokerRack]:
        live = [BrokerRack(one.id, one.rack) for one in self._metadata.brokers.values()]
        if not insist_on_racks and any(one.rack is None for one in live):
            live = [BrokerRack(one.id) for one in live]
        return sorted(live, key=lambda one: one.id)

    async def _write(
        self, topic: str, assignment: Assignment, overrides: Mapping[str, str]
    ) -> None:
        try:
            await self._store.create_topic(topic, assignment, overrides)
        except TopicExistsError:
            raise _exists(topic) from None
        logger.info("Created topic %s with %d partitions", topic, len(assignment))


def _exists(topic: str) -> ApiError:
    return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")


def _check_assignment(assignment: Assignment) -> None:
    problem = None
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        problem = "All partitions should have the same number of replicas"
    elif not all(assignment.values()):
        problem = "A partition needs at least one replica"
    elif any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        problem = "A partition names the same replica twice"
    elif sorted(assignment) != list(range(len(assignment))):
        problem = "Partitions must be numbered 0, 1, 2 and so on"
    elif any(broker < 0 for replicas in assignment.values() for broker in replicas):
        problem = "Broker ids are not negative"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
