"""What clients may ask and change of configuration: topics, brokers, and the brokers' loggers.

Decides who is meant and whether it may be; one resource at a time. What is changed goes to
ZooKeeper and takes effect, here and everywhere, when the notice of it comes back.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from broker.configs import loggers
from broker.configs.describing import (
    Entry,
    broker_entries,
    default_entries,
    logger_entries,
    topic_entries,
)
from broker.configs.dynamic_settings import DynamicSettings
from broker.failures import ApiError
from broker.metadata_cache import MetadataCache
from broker.settings import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    ConflictingSettingsError,
    SettingsError,
    TopicSettings,
    UnknownSettingError,
)
from broker.settings.definition import Kind, Setting, split_list, to_text
from broker.settings.dynamic import STORE_SETTINGS, base_name
from broker.topic_names import check_name
from controller import znodes
from controller.metadata_store import MetadataStore
from network.protocol import ErrorCode

logger = logging.getLogger(__name__)


class ResourceType(IntEnum):
    """What can be configured, by the protocol's numbers."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8

    @classmethod
    def _missing_(cls, value: object) -> "ResourceType":
        return cls.UNKNOWN


class Operation(IntEnum):
    """What is done to one setting, by the protocol's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that has settings."""

    kind: ResourceType
    name: str

    def __str__(self) -> str:
        return f"ConfigResource(type={self.kind.name}, name='{self.name}')"


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one setting."""

    name: str
    operation: int
    value: str | None


_LISTS: Final = (Operation.APPEND, Operation.SUBTRACT)


class ConfigAdmin:
    """Reads and writes configuration for clients."""

    def __init__(
        self,
        broker_id: int,
        dynamic: DynamicSettings,
        store: MetadataStore,
        metadata: MetadataCache,
    ) -> None:
        self._broker_id = broker_id
        self._dynamic = dynamic
        self._store = store
        self._metadata = metadata
        # A change is read, checked and written: two at a time would lose one of them.
        self._one_at_a_time = asyncio.Lock()

    # -- describing --------------------------------------------------------------------------

    async def describe(self, resource: Resource) -> list[Entry]:
        """All settings of a resource. Raises ApiError."""
        match resource.kind:
            case ResourceType.TOPIC:
                return await self._describe_topic(resource.name)
            case ResourceType.BROKER if not resource.name:
                return default_entries(self._dynamic)
            case ResourceType.BROKER:
                self._check_broker(resource.name, or_nobody=True)
                return broker_entries(self._dynamic)
            case ResourceType.BROKER_LOGGER:
                self._check_logger_broker(resource.name)
                return logger_entries(loggers.all_levels())
        raise _invalid(f"Unsupported resource type: {resource.kind.name}")

    async def _describe_topic(self, topic: str) -> list[Entry]:
        check_name(topic)
        if topic not in self._metadata:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        overrides = await self._store.topic_config(topic)
        return topic_entries(self._dynamic, self._readable(overrides))

    def _readable(self, overrides: Mapping[str, str]) -> TopicSettings:
        """A topic's settings without those that somebody else wrote and we cannot read."""
        known = {name: text for name, text in overrides.items() if name in TOPIC_SETTINGS}
        try:
            return TopicSettings(self._dynamic.settings, known)
        except SettingsError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None

    # -- altering ----------------------------------------------------------------------------

    async def alter(
        self, resource: Resource, settings: Mapping[str, str | None], *, validate_only: bool
    ) -> None:
        """Replace all settings of a resource. Raises ApiError."""
        without_value = [name for name, value in settings.items() if value is None]
        if without_value:
            raise _invalid(f"Null value not supported for: {', '.join(without_value)}")
        wanted = {name: value for name, value in settings.items() if value is not None}
        async with self._one_at_a_time:
            if resource.kind is ResourceType.TOPIC:
                await self._alter_topic(resource, wanted, validate_only)
            elif resource.kind is ResourceType.BROKER:
                self._check_broker(resource.name)
                await self._alter_broker(resource, wanted, validate_only)
            else:
                raise _unalterable(resource)

    async def incremental_alter(
        self, resource: Resource, changes: Sequence[Change], *, validate_only: bool
    ) -> None:
        """Change single settings of a resource. Raises ApiError."""
        _check_changes(changes)
        async with self._one_at_a_time:
            match resource.kind:
                case ResourceType.TOPIC:
                    stored = await self._store.topic_config(resource.name)
                    wanted = _altered(stored, changes, TOPIC_SETTINGS)
                    await self._alter_topic(resource, wanted, validate_only)
                case ResourceType.BROKER:
                    self._check_broker(resource.name)
                    entity = resource.name or znodes.DEFAULT_ENTITY
                    stored = await self._store.config(znodes.BROKER_CONFIGS, entity)
                    layer = self._dynamic.from_stored(stored, per_broker=bool(resource.name))
                    wanted = _altered(layer, changes, BROKER_SETTINGS)
                    await self._alter_broker(resource, wanted, validate_only)
                case ResourceType.BROKER_LOGGER:
                    self._check_broker(resource.name)
                    _alter_loggers(resource, changes, validate_only)
                case _:
                    raise _unalterable(resource)

    async def _alter_topic(
        self, resource: Resource, wanted: Mapping[str, str], validate_only: bool
    ) -> None:
        topic = resource.name
        check_name(topic)
        if topic not in await self._store.topics():
            # Kafka 2.5 has no better code for this.
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f'Topic "{topic}" does not exist.')
        try:
            TopicSettings(self._dynamic.settings, wanted)
        except (UnknownSettingError, ConflictingSettingsError) as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
        except SettingsError as error:
            raise _invalid_value(resource, error) from None
        if not validate_only:
            logger.info("Updating topic %s with new configuration %s", topic, wanted)
            await self._store.change_config(znodes.TOPIC_CONFIGS, topic, wanted)

    async def _alter_broker(
        self, resource: Resource, wanted: Mapping[str, str], validate_only: bool
    ) -> None:
        per_broker = bool(resource.name)
        try:
            self._dynamic.check(wanted, per_broker=per_broker)
            if validate_only:
                return
            stored = self._dynamic.to_stored(wanted)
            if per_broker and any(base_name(name) in STORE_SETTINGS for name in wanted):
                self._dynamic.reload_files()
        except SettingsError as error:
            raise _invalid_value(resource, error) from None
        entity = resource.name or znodes.DEFAULT_ENTITY
        await self._store.change_config(znodes.BROKER_CONFIGS, entity, stored)

    # -- who is meant ------------------------------------------------------------------------

    def _check_broker(self, name: str, *, or_nobody: bool = False) -> None:
        """Only a broker itself answers for its settings; an empty name means all of them."""
        if name and _broker_number(name) != self._broker_id:
            or_empty = " or empty string" if or_nobody else ""
            raise _invalid(
                f"Unexpected broker id, expected {self._broker_id}{or_empty}, but received {name}"
            )

    def _check_logger_broker(self, name: str) -> None:
        if not name:
            raise _invalid("Broker id must not be empty")
        self._check_broker(name)


def _broker_number(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise _invalid(f"Broker id must be an integer, but it is: {name}") from None


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _invalid_value(resource: Resource, error: SettingsError) -> ApiError:
    return _invalid(f"Invalid config value for resource {resource}: {error}")


def _unalterable(resource: Resource) -> ApiError:
    return _invalid(
        "AlterConfigs is only supported for topics and brokers,"
        f" but resource type is {resource.kind.name}"
    )


# -- single changes ------------------------------------------------------------------------------


def _check_changes(changes: Sequence[Change]) -> None:
    named = Counter(change.name for change in changes)
    repeated = [name for name, count in named.items() if count > 1]
    if repeated:
        raise _invalid(f"Error due to duplicate config keys : {','.join(repeated)}")
    for change in changes:
        if change.operation not in list(Operation):
            raise _invalid(f"Unknown operation {change.operation} for {change.name}")
        if change.value is None and change.operation != Operation.DELETE:
            raise _invalid(f"Null value not supported for: {change.name}")


def _altered(
    stored: Mapping[str, str], changes: Sequence[Change], known: Mapping[str, Setting[Any]]
) -> dict[str, str]:
    """What is stored, after the changes."""
    result = dict(stored)
    for change in changes:
        if change.operation == Operation.DELETE:
            result.pop(change.name, None)
        elif change.operation == Operation.SET:
            result[change.name] = change.value or ""
        else:
            result[change.name] = _altered_list(result.get(change.name), change, known)
    return result


def _altered_list(current: str | None, change: Change, known: Mapping[str, Setting[Any]]) -> str:
    """A list with more entries, or fewer; one that is not set begins with its default."""
    operation = Operation(change.operation)
    setting = known.get(change.name)
    if setting is None:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
    if setting.kind is not Kind.LIST:
        raise _invalid(
            f"Config value {operation.name.lower()} is not allowed for config key: {change.name}"
        )
    entries = list(split_list(to_text(setting.default) or "" if current is None else current))
    wanted = split_list(change.value or "")
    if operation is Operation.APPEND:
        entries += wanted
    else:
        for entry in wanted:
            if entry in entries:
                entries.remove(entry)
    return ",".join(entries)


def _alter_loggers(resource: Resource, changes: Sequence[Change], validate_only: bool) -> None:
    for change in changes:
        _check_logger_change(resource, change)
    if validate_only:
        return
    for change in changes:
        if change.operation == Operation.SET:
            loggers.set_level(change.name, change.value or "")
        else:
            loggers.unset_level(change.name)


def _check_logger_change(resource: Resource, change: Change) -> None:
    if change.operation in _LISTS:
        raise _invalid(
            f"{Operation(change.operation).name} operation is not allowed"
            f" for the {ResourceType.BROKER_LOGGER.name} resource"
        )
    if not loggers.exists(change.name):
        raise _invalid(
            f"Invalid config value for resource {resource}: Logger {change.name} does not exist!"
        )
    if change.operation == Operation.SET and change.value not in loggers.LEVELS:
        raise _invalid(
            f"Invalid config value for resource {resource}: Cannot set the log level of"
            f" {change.name} to {change.value} as it is not a supported log level."
            f" Valid log levels are {', '.join(loggers.LEVELS)}"
        )
    if change.operation == Operation.DELETE and change.name == loggers.ROOT:
        raise _invalid(f"Removing the log level of the {loggers.ROOT} logger is not allowed")
