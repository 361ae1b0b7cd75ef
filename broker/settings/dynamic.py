"""Settings that may change while the broker runs: which, at which level, and what they make.

ZooKeeper holds two layers of them over what the broker was started with: defaults of the cluster,
and over those the broker's own. Owns the rules for names and values of these layers; knows neither
ZooKeeper nor what a change does.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from broker.settings.definition import (
    Dynamic,
    InvalidValueError,
    Kind,
    Setting,
    at_least,
    declarations,
)
from broker.settings.errors import SettingsError
from broker.settings.kinds import CLUSTER_WIDE, LONG_MAX, MEDIUM, long
from broker.settings.settings import BROKER_SETTINGS
from broker.settings.sources import Given, Source

_OF_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.+)")

_OF_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""What a listener may set for each SASL mechanism: listener.name.NAME.MECHANISM.SETTING."""

STORE_SETTINGS = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
    }
)
"""Settings of key and trust stores; they change for one listener at a time only."""

_SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH_SYNONYMS = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
_SYNONYMS_OF = {name: names for names in _SYNONYMS for name in names} | {
    _FLUSH_SYNONYMS[0]: _FLUSH_SYNONYMS  # the scheduler's interval is a setting in its own right
}


class DynamicOnlyTable:
    """Settings that no file knows: they are only ever set in ZooKeeper."""

    leader_replication_throttled_rate = long(
        LONG_MAX,
        MEDIUM,
        "Bytes per second that throttled leaders may send to followers.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
        idle=True,
    )
    follower_replication_throttled_rate = long(
        LONG_MAX,
        MEDIUM,
        "Bytes per second that throttled followers may fetch.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
        idle=True,
    )
    replica_alter_log_dirs_io_max_bytes_per_second = long(
        LONG_MAX,
        MEDIUM,
        "Bytes per second that moves between log directories may write.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
        idle=True,
    )


DYNAMIC_ONLY_SETTINGS: Mapping[str, Setting[Any]] = {
    setting.name: setting for setting in declarations(DynamicOnlyTable)
}
DYNAMIC_SETTINGS: Mapping[str, Setting[Any]] = {
    name: setting
    for name, setting in BROKER_SETTINGS.items()
    if setting.dynamic is not Dynamic.READ_ONLY
}
"""What a running broker may be told to change, by name."""

_PASSWORDS = tuple(name for name, one in DYNAMIC_SETTINGS.items() if one.kind is Kind.PASSWORD)


def base_name(name: str) -> str:
    """The setting that listener.name.NAME.SETTING stands for; any other name as it is."""
    match = _OF_LISTENER.fullmatch(name)
    if match is None:
        return name
    return next((one for one in _OF_MECHANISM if match[1].endswith(one)), match[1])


def declaration(name: str) -> Setting[Any] | None:
    """What is known of a name, be it of one listener or of the broker."""
    return (
        BROKER_SETTINGS.get(name)
        or DYNAMIC_ONLY_SETTINGS.get(name)
        or BROKER_SETTINGS.get(base_name(name))
    )


def is_sensitive(name: str) -> bool:
    """Whether a value must not be shown: a secret's, and one of which nothing is known."""
    setting = declaration(name)
    return setting is None or setting.is_secret


def is_stored_password(name: str) -> bool:
    """Whether a value is encrypted before it goes to ZooKeeper."""
    return name.endswith(_PASSWORDS)


def synonyms_of(name: str) -> tuple[str, ...]:
    """The names under which a value is looked for, the stronger first."""
    if _OF_LISTENER.fullmatch(name):
        return name, base_name(name)
    return _SYNONYMS_OF.get(name, (name,))


def check_names(names: Iterable[str], *, per_broker: bool) -> None:
    """Refuse what cannot be changed at this level. Raises SettingsError."""
    given = sorted(names)
    fixed = [name for name in given if name in BROKER_SETTINGS and name not in DYNAMIC_SETTINGS]
    _refuse(fixed, "cannot be updated dynamically")
    stores = [name for name in given if name in STORE_SETTINGS]
    _refuse(stores, "can be updated for a listener only, as listener.name.NAME.SETTING")
    if not per_broker:
        own = [name for name in given if is_per_broker(name)]
        _refuse(own, "cannot be updated for all brokers, a broker id must be given")


def is_per_broker(name: str) -> bool:
    """Whether a setting has no default of the cluster."""
    if _OF_LISTENER.fullmatch(name):
        return base_name(name) != "max.connections"
    setting = DYNAMIC_SETTINGS.get(name)
    return setting is not None and setting.dynamic is Dynamic.PER_BROKER


def check_value(name: str, text: str) -> None:
    """Refuse a text that is no value of the setting. Raises SettingsError."""
    match = _OF_LISTENER.fullmatch(name)
    plain = match[1] if match else name
    setting = DYNAMIC_SETTINGS.get(plain) or DYNAMIC_ONLY_SETTINGS.get(plain)
    if setting is None:
        return  # somebody else's, who knows what is right
    try:
        setting.parse(text)
    except InvalidValueError as error:
        shown = "[hidden]" if setting.is_secret else text
        raise SettingsError(name, shown, str(error)) from None


def overlay(
    static: Mapping[str, Given], defaults: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, Given]:
    """What holds when the cluster's defaults and then the broker's own are laid over the rest.

    A setting also displaces its synonyms below it: log.retention.ms would otherwise win over
    log.retention.hours wherever it is set.
    """
    result = dict(static)
    for layer, source in ((defaults, Source.DYNAMIC_DEFAULT), (own, Source.DYNAMIC_BROKER)):
        for name, text in layer.items():
            for synonym in _SYNONYMS_OF.get(name, (name,)):
                result.pop(synonym, None)
            result[name] = Given(text, source, source.value)
    return result


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise SettingsError(", ".join(names), None, why)
