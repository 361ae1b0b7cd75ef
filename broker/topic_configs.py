"""The effective settings of every topic: what ZooKeeper holds for it over the broker's own.

Handlers and the replica manager ask here; only this module knows that overrides live in ZooKeeper.
configs/log_settings.py takes changes to the open logs.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Protocol

from broker.settings import (
    TOPIC_SETTINGS,
    ConflictingSettingsError,
    Settings,
    SettingsError,
    TopicSettings,
)
from broker.settings.definition import to_text
from broker.settings.kafka_versions import message_format_of
from broker.settings.sources import Source
from storage.log_config import LogConfig

logger = logging.getLogger(__name__)

_FORMAT = "message.format.version"


class ConfigSource(IntEnum):
    """Where a setting's value comes from, by the numbers of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6


SOURCE_NUMBERS = {
    Source.DEFAULT: ConfigSource.DEFAULT,
    Source.FILE: ConfigSource.STATIC_BROKER,
    Source.ENVIRONMENT: ConfigSource.STATIC_BROKER,
    Source.OVERRIDE: ConfigSource.STATIC_BROKER,
    Source.DYNAMIC_DEFAULT: ConfigSource.DYNAMIC_DEFAULT_BROKER,
    Source.DYNAMIC_BROKER: ConfigSource.DYNAMIC_BROKER,
}


@dataclass(frozen=True, slots=True)
class TopicConfigEntry:
    """One setting of a topic, as clients are told of it."""

    name: str
    value: str | None
    source: ConfigSource


class OverrideStore(Protocol):
    """Where overrides are kept."""

    async def topic_config(self, topic: str) -> Mapping[str, str]: ...


class TopicConfigs:
    """Settings by topic."""

    def __init__(self, settings: Settings, store: OverrideStore) -> None:
        self._settings = settings
        self._store = store
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._known: dict[str, LogConfig] = {}
        self._loading: Counter[str] = Counter()
        self.default = self.default_of(settings)

    @staticmethod
    def default_of(settings: Settings) -> LogConfig:
        """What holds for a topic without settings of its own."""
        return log_config(TopicSettings(settings, {}))

    async def load(self, topics: Iterable[str]) -> None:
        """Read the overrides of topics that are not known yet."""
        unknown = [topic for topic in dict.fromkeys(topics) if topic not in self._known]
        if not unknown:
            return
        self._loading.update(unknown)
        try:
            found = await asyncio.gather(*map(self._store.topic_config, unknown))
        finally:
            self._loading.subtract(unknown)
        for topic, overrides in zip(unknown, found, strict=True):
            if topic not in self._known:  # else something newer has come meanwhile
                self._learn(topic, overrides)

    def change(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Have other overrides hold for a topic from now on, if it is of any interest here."""
        if topic in self._known or self._loading[topic]:
            self._learn(topic, overrides)

    def change_defaults(self) -> None:
        """The broker's settings are others now: topics that do not override them follow."""
        self.default = self.default_of(self._settings)
        for topic, overrides in self._overrides.items():
            self._learn(topic, overrides)

    def forget(self, topic: str) -> None:
        self._known.pop(topic, None)
        self._overrides.pop(topic, None)

    def all_known(self) -> Mapping[str, LogConfig]:
        return self._known

    def log_config(self, topic: str) -> LogConfig:
        return self._known.get(topic, self.default)

    def _learn(self, topic: str, overrides: Mapping[str, str]) -> None:
        self._overrides[topic] = overrides
        self._known[topic] = self._effective(topic, overrides) if overrides else self.default

    def _effective(self, topic: str, overrides: Mapping[str, str]) -> LogConfig:
        """What is wrong among the overrides is left out; nobody can be told but the log."""
        usable: dict[str, str] = {}
        for name, text in overrides.items():
            try:
                TopicSettings(self._settings, {name: text})
                self._check_format(name, text)
            except ConflictingSettingsError:
                usable[name] = text
            except SettingsError as error:
                logger.error("A setting of topic %s is ignored: %s", topic, error)
            else:
                usable[name] = text
        try:
            return log_config(TopicSettings(self._settings, usable))
        except SettingsError as error:
            logger.error("The settings of topic %s are ignored: %s", topic, error)
            return self.default

    def _check_format(self, name: str, text: str) -> None:
        brokers_speak = self._settings.inter_broker_protocol_version
        if name == _FORMAT and message_format_of(text) > message_format_of(brokers_speak):
            raise SettingsError(
                name, text, f"newer than inter.broker.protocol.version, {brokers_speak}"
            )


def log_config(topic: TopicSettings) -> LogConfig:
    """A topic's settings in the shape that the storage room knows."""
    given = (field.name for field in fields(LogConfig) if field.init)
    values = {name: getattr(topic, name) for name in given}
    values["cleanup_policy"] = frozenset(topic.cleanup_policy)
    return LogConfig(**values)


def describe(settings: Settings, topic: TopicSettings) -> list[TopicConfigEntry]:
    """Every setting of a topic with its value and where that comes from."""
    return [
        TopicConfigEntry(name, to_text(topic[name]), source_of(settings, topic, name))
        for name in TOPIC_SETTINGS
    ]


def source_of(settings: Settings, topic: TopicSettings, name: str) -> ConfigSource:
    """Of the broker's settings only the one behind counts, not its synonyms, as in Kafka:
    retention.ms that follows from log.retention.hours is called a default."""
    if name in topic.overrides:
        return ConfigSource.TOPIC
    behind = TOPIC_SETTINGS[name].broker
    return (
        ConfigSource.DEFAULT if behind is None else SOURCE_NUMBERS[settings.source_of(behind.name)]
    )
