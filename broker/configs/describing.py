"""Settings as DescribeConfigs shows them: value, source, and the synonyms that lead to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.configs.dynamic_settings import DynamicSettings
from broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS, TopicSettings
from broker.settings.definition import to_text
from broker.settings.dynamic import DYNAMIC_SETTINGS, is_sensitive, synonyms_of
from broker.topic_configs import ConfigSource

Layers = Sequence[tuple[ConfigSource, Mapping[str, str]]]
"""Where values are looked for, the strongest first."""


@dataclass(frozen=True, slots=True)
class Synonym:
    """One place that says something of a value."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting, with all that speaks for its value, the strongest first."""

    name: str
    value: str | None
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    source: ConfigSource


def broker_entries(dynamic: DynamicSettings) -> list[Entry]:
    """Every setting of this broker, also those that it was given and does not know."""
    settings = dynamic.settings
    others = (settings.given.keys() | settings.unknown.keys()) - BROKER_SETTINGS.keys()
    values = {name: to_text(settings[name]) for name in BROKER_SETTINGS}
    values |= {name: _text_of_other(dynamic, name) for name in sorted(others)}
    layers = _layers(dynamic)
    return [
        _broker_entry(name, value, tuple(_synonyms(layers, name))) for name, value in values.items()
    ]


def default_entries(dynamic: DynamicSettings) -> list[Entry]:
    """The defaults of the cluster that are set in ZooKeeper, and nothing else."""
    layers = [(ConfigSource.DYNAMIC_DEFAULT_BROKER, dynamic.defaults)]
    return [
        _broker_entry(name, value, tuple(_synonyms(layers, name)))
        for name, value in sorted(dynamic.defaults.items())
    ]


def topic_entries(dynamic: DynamicSettings, topic: TopicSettings) -> list[Entry]:
    """Every setting of a topic."""
    layers = _layers(dynamic)
    entries: list[Entry] = []
    for name, setting in TOPIC_SETTINGS.items():
        value = to_text(topic[name])
        synonyms: list[Synonym] = []
        if name in topic.overrides:
            synonyms.append(Synonym(name, value, ConfigSource.TOPIC))
        if setting.broker is not None:
            synonyms += _synonyms(layers, setting.broker.name)
        entries.append(Entry(name, value, False, False, tuple(synonyms), _first_source(synonyms)))
    return entries


def logger_entries(levels: Mapping[str, str]) -> list[Entry]:
    return [
        Entry(name, level, False, False, (), ConfigSource.DYNAMIC_BROKER_LOGGER)
        for name, level in levels.items()
    ]


def _broker_entry(name: str, value: str | None, synonyms: tuple[Synonym, ...]) -> Entry:
    sensitive = is_sensitive(name)
    return Entry(
        name,
        None if sensitive else value,
        name not in DYNAMIC_SETTINGS,
        sensitive,
        synonyms,
        _first_source(synonyms),
    )


def _text_of_other(dynamic: DynamicSettings, name: str) -> str:
    settings = dynamic.settings
    return (settings.given.get(name) or settings.unknown[name]).text


def _layers(dynamic: DynamicSettings) -> Layers:
    static = {**dynamic.settings.unknown, **dynamic.static}
    return [
        (ConfigSource.DYNAMIC_BROKER, dynamic.own),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, dynamic.defaults),
        (ConfigSource.STATIC_BROKER, {name: given.text for name, given in static.items()}),
        (ConfigSource.DEFAULT, _DEFAULTS),
    ]


def _synonyms(layers: Layers, name: str) -> list[Synonym]:
    """All values of a setting, the strongest first; what comes before the setting's own name does
    not count, as in Kafka."""
    sensitive = is_sensitive(name)
    found = [
        Synonym(synonym, None if sensitive else layer[synonym], source)
        for source, layer in layers
        for synonym in synonyms_of(name)
        if synonym in layer
    ]
    start = next((index for index, one in enumerate(found) if one.name == name), len(found))
    return found[start:]


def _first_source(synonyms: Iterable[Synonym]) -> ConfigSource:
    return next((one.source for one in synonyms), ConfigSource.DEFAULT)


_DEFAULTS: Mapping[str, str] = {
    name: text
    for name, setting in BROKER_SETTINGS.items()
    if (text := to_text(setting.default)) is not None
}
