"""Settings of a single topic: what a topic may override, and the broker setting behind each.

Owns the topic-level names and their checks. Where a topic says nothing the broker's value holds.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from broker.settings.definition import (
    Constraint,
    Importance,
    InvalidValueError,
    Kind,
    Setting,
    at_least,
    between,
    declarations,
    one_of,
)
from broker.settings.errors import (
    ConflictingSettingsError,
    SettingsError,
    UnknownSettingError,
)
from broker.settings.log_table import COMPRESSION_TYPES
from broker.settings.settings import Settings

T = TypeVar("T")

_REPLICA = re.compile(r"([0-9]+:[0-9]+)?")

_THROTTLED_REPLICAS = Constraint(
    "* or a list of partition:broker",
    lambda entries: entries[:1] == ("*",) or all(_REPLICA.fullmatch(entry) for entry in entries),
)


class TopicSetting(Setting[T]):
    """A setting of a topic, with the broker setting behind it where there is one."""

    __slots__ = ("broker", "fallback")

    broker: Setting[Any] | None
    fallback: Callable[[Settings], T]


def on_topic(
    broker: Setting[T | None],
    check: Constraint | None = None,
    fallback: Callable[[Settings], T] | None = None,
) -> TopicSetting[T]:
    """A topic's version of a broker setting: of the same type and, unless told otherwise, under
    the same constraint. `fallback` reads a broker value that several settings make up."""

    def read_broker(settings: Settings) -> T:
        value: T = getattr(settings, broker.attribute)
        return value

    importance = Importance.LOW if broker.importance is Importance.LOW else Importance.MEDIUM
    default: Any = broker.default
    setting: TopicSetting[T] = TopicSetting(
        broker.kind,
        default,
        importance,
        broker.documentation,
        check=check or broker.constraint,
        dynamic=broker.dynamic,
        idle=broker.idle,
    )
    setting.broker = broker
    setting.fallback = fallback or read_broker
    return setting


def _throttled_replicas(documentation: str) -> TopicSetting[tuple[str, ...]]:
    setting: TopicSetting[tuple[str, ...]] = TopicSetting(
        Kind.LIST, (), Importance.MEDIUM, documentation, check=_THROTTLED_REPLICAS, idle=True
    )
    setting.broker = None
    setting.fallback = lambda _settings: ()
    return setting


class TopicSettings:
    """A topic's effective settings: `topic.segment_bytes`, or `topic["segment.bytes"]`."""

    segment_bytes = on_topic(Settings.log_segment_bytes)
    segment_ms = on_topic(Settings.log_roll_ms, at_least(1), lambda s: s.effective_log_roll_ms)
    segment_jitter_ms = on_topic(
        Settings.log_roll_jitter_ms, at_least(0), lambda s: s.effective_log_roll_jitter_ms
    )
    segment_index_bytes = on_topic(Settings.log_index_size_max_bytes, at_least(0))
    flush_messages = on_topic(Settings.log_flush_interval_messages, at_least(0))
    flush_ms = on_topic(
        Settings.log_flush_interval_ms, at_least(0), lambda s: s.effective_log_flush_ms
    )
    retention_bytes = on_topic(Settings.log_retention_bytes)
    retention_ms = on_topic(
        Settings.log_retention_ms, at_least(-1), lambda s: s.effective_log_retention_ms
    )
    max_message_bytes = on_topic(Settings.message_max_bytes)
    index_interval_bytes = on_topic(Settings.log_index_interval_bytes)
    delete_retention_ms = on_topic(Settings.log_cleaner_delete_retention_ms, at_least(0))
    min_compaction_lag_ms = on_topic(Settings.log_cleaner_min_compaction_lag_ms, at_least(0))
    max_compaction_lag_ms = on_topic(Settings.log_cleaner_max_compaction_lag_ms, at_least(1))
    file_delete_delay_ms = on_topic(Settings.log_segment_delete_delay_ms)
    min_cleanable_dirty_ratio = on_topic(Settings.log_cleaner_min_cleanable_ratio, between(0, 1))
    cleanup_policy = on_topic(Settings.log_cleanup_policy)
    unclean_leader_election_enable = on_topic(Settings.unclean_leader_election_enable)
    min_insync_replicas = on_topic(Settings.min_insync_replicas)
    compression_type = on_topic(Settings.compression_type, one_of(*COMPRESSION_TYPES))
    preallocate = on_topic(Settings.log_preallocate)
    message_format_version = on_topic(Settings.log_message_format_version)
    message_timestamp_type = on_topic(Settings.log_message_timestamp_type)
    message_timestamp_difference_max_ms = on_topic(
        Settings.log_message_timestamp_difference_max_ms, at_least(0)
    )
    message_downconversion_enable = on_topic(Settings.log_message_downconversion_enable)
    leader_replication_throttled_replicas = _throttled_replicas(
        "Replicas whose leaders' sending is throttled, as partition:broker,... or *."
    )
    follower_replication_throttled_replicas = _throttled_replicas(
        "Replicas whose followers' fetching is throttled, as partition:broker,... or *."
    )

    overrides: Mapping[str, str]

    def __init__(self, broker: Settings, overrides: Mapping[str, str]) -> None:
        """Raises SettingsError for an unknown name or a wrong value among the overrides."""
        unknown = next((name for name in overrides if name not in TOPIC_SETTINGS), None)
        if unknown is not None:
            raise UnknownSettingError(unknown, None, "unknown topic setting")
        values = self.__dict__
        values["overrides"] = dict(overrides)
        for name, setting in TOPIC_SETTINGS.items():
            text = overrides.get(name)
            values[setting.attribute] = (
                setting.fallback(broker) if text is None else _parse(setting, text)
            )
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConflictingSettingsError(
                "min.compaction.lag.ms",
                str(self.min_compaction_lag_ms),
                f"must not exceed max.compaction.lag.ms, {self.max_compaction_lag_ms}",
            )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"settings are frozen; {name} cannot be set")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, TOPIC_SETTINGS[name].attribute)


def _parse(setting: TopicSetting[T], text: str) -> T:
    try:
        return setting.parse(text)
    except InvalidValueError as error:
        raise SettingsError(setting.name, text, str(error)) from None


TOPIC_SETTINGS: Mapping[str, TopicSetting[Any]] = {
    setting.name: setting
    for setting in declarations(TopicSettings)
    if isinstance(setting, TopicSetting)
}
"""Every setting of a topic by its Kafka name."""
