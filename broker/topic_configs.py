"""The effective settings of every topic: what ZooKeeper holds for it over the broker's own.

Handlers and the replica manager ask here; only this module knows that overrides live in ZooKeeper.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Protocol

from broker.settings import TOPIC_SETTINGS, Settings, SettingsError, TopicSettings
from storage.log_config import LogConfig

logger = logging.getLogger(__name__)

# Broker settings that stand for one topic setting, though only one of them has its unit.
SYNONYMS = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
}


class ConfigSource(IntEnum):
    """Where a setting's value comes from, by the numbers of DescribeConfigs."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class TopicConfigEntry:
    """One setting of a topic, as clients are told of it."""

    name: str
    value: str
    source: ConfigSource


class OverrideStore(Protocol):
    """Where overrides are kept."""

    async def topic_config(self, topic: str) -> Mapping[str, str]: ...


class TopicConfigs:
    """Settings by topic."""

    def __init__(self, settings: Settings, store: OverrideStore) -> None:
        self._settings = settings
        self._store = store
        self._known: dict[str, LogConfig] = {}
        self.default = self.default_of(settings)

    @staticmethod
    def default_of(settings: Settings) -> LogConfig:
        """What holds for a topic without settings of its own."""
        return log_config(TopicSettings(settings, {}))

    async def load(self, topics: Iterable[str]) -> None:
        """Read the overrides of topics that are not known yet."""
        for topic in topics:
            if topic not in self._known:
                self._known[topic] = self._effective(topic, await self._store.topic_config(topic))

    def forget(self, topic: str) -> None:
        self._known.pop(topic, None)

    def all_known(self) -> Mapping[str, LogConfig]:
        return self._known

    def log_config(self, topic: str) -> LogConfig:
        return self._known.get(topic, self.default)

    def _effective(self, topic: str, overrides: Mapping[str, str]) -> LogConfig:
        try:
            return log_config(TopicSettings(self._settings, overrides))
        except SettingsError as error:
            logger.error("The settings of topic %s are ignored: %s", topic, error)
            return self.default


def log_config(topic: TopicSettings) -> LogConfig:
    """A topic's settings in the shape that the storage room knows."""
    given = (field.name for field in fields(LogConfig) if field.init)
    values = {name: getattr(topic, name) for name in given}
    values["cleanup_policy"] = frozenset(topic.cleanup_policy)
    return LogConfig(**values)


def describe(settings: Settings, topic: TopicSettings) -> list[TopicConfigEntry]:
    """Every setting of a topic with its value and where that comes from."""
    return [
        TopicConfigEntry(name, _text(topic[name]), _source(settings, topic, name))
        for name in TOPIC_SETTINGS
    ]


def _source(settings: Settings, topic: TopicSettings, name: str) -> ConfigSource:
    if name in topic.overrides:
        return ConfigSource.TOPIC
    behind = TOPIC_SETTINGS[name].broker
    synonyms = () if behind is None else SYNONYMS.get(behind.name, (behind.name,))
    if any(synonym in settings.given for synonym in synonyms):
        return ConfigSource.STATIC_BROKER
    return ConfigSource.DEFAULT


def _text(value: Any) -> str:
    """A value as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list | frozenset):
        return ",".join(value)
    return str(value)
