"""All settings of a running broker: typed, checked, frozen for those who read them.

`Settings` puts the tables together; `load_settings` fills it from the file, the environment and
the command line. Values that Kafka derives from several settings are properties here.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from broker.settings.checks import check_together, odd_listeners
from broker.settings.cluster_table import (
    ControllerTable,
    MetricsTable,
    QuotaTable,
    ReplicationTable,
    RequestTable,
)
from broker.settings.coordinator_table import GroupTable, OffsetsTable, TransactionTable
from broker.settings.definition import InvalidValueError, Setting, declarations, split_list
from broker.settings.errors import SettingsError
from broker.settings.listeners import Listener, parse_listeners, parse_protocol_map
from broker.settings.log_table import CleanerTable, LogTable
from broker.settings.security_table import SaslTable, SecretsTable, TlsTable
from broker.settings.server_table import NetworkTable, ServerTable, ZooKeeperTable
from broker.settings.sources import Collected, Given, Source, closest_name, collect

T = TypeVar("T")

_MS_PER_MINUTE = 60 * 1000
_MS_PER_HOUR = 60 * _MS_PER_MINUTE


class Settings(
    ZooKeeperTable,
    ServerTable,
    NetworkTable,
    LogTable,
    CleanerTable,
    ReplicationTable,
    ControllerTable,
    RequestTable,
    GroupTable,
    OffsetsTable,
    TransactionTable,
    QuotaTable,
    MetricsTable,
    TlsTable,
    SaslTable,
    SecretsTable,
):
    """`settings.num_io_threads` where the name is known to the reader (and to mypy),
    `settings["num.io.threads"]` where it is data."""

    def __init__(self, collected: Collected, home: Path) -> None:
        self.__dict__["given"] = dict(collected.given)
        self.__dict__["unknown"] = dict(collected.unknown)
        self.__dict__["ignored_environment"] = collected.ignored_environment
        self.__dict__["home"] = home
        for name, given in collected.given.items():
            setting = BROKER_SETTINGS.get(name)
            if setting is not None:
                self.__dict__[setting.attribute] = _parse(setting, name, given)
            else:
                _check_passed_on(name, given)
        check_together(self)

    given: Mapping[str, Given]
    unknown: Mapping[str, Given]
    ignored_environment: tuple[str, ...]
    home: Path

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"settings are frozen; {name} cannot be set")

    def adopt(self, other: "Settings") -> None:
        """Take over all values of another, for everybody who holds this one: how a change at run
        time becomes known. What is not dynamic stays the same by the rules of `dynamic.py`."""
        self.__dict__.clear()
        self.__dict__.update(other.__dict__)

    def snapshot(self) -> "Settings":
        """What holds now, whatever is adopted later."""
        copy = object.__new__(Settings)
        copy.__dict__.update(self.__dict__)
        return copy

    def with_given(self, given: Mapping[str, Given]) -> "Settings":
        """The same broker with other values; raises SettingsError where they do not fit."""
        return Settings(Collected(given, self.unknown, self.ignored_environment), self.home)

    def of_listener(self, listener: str) -> "Settings":
        """The settings as a listener sees them: its own, listener.name.NAME.SETTING, come first."""
        view = self.snapshot()
        prefix = listener_prefix(listener)
        for name, given in self.given.items():
            setting = BROKER_SETTINGS.get(name.removeprefix(prefix))
            if setting is not None and name.startswith(prefix):
                view.__dict__[setting.attribute] = _parse(setting, name, given)
        return view

    def has_listener_value(self, listener: str, name: str) -> bool:
        return listener_prefix(listener) + name in self.given

    def __getitem__(self, name: str) -> Any:
        return getattr(self, BROKER_SETTINGS[name].attribute)

    def error(self, name: str, why: str) -> SettingsError:
        """The error for a value that is at odds with others."""
        given = self.given.get(name)
        text = str(self[name]) if given is None else given.text
        return SettingsError(name, text, why, given.origin if given is not None else "default")

    def source_of(self, name: str) -> Source:
        given = self.given.get(name)
        return given.source if given is not None else Source.DEFAULT

    def warnings(self) -> list[str]:
        """What an operator may not have meant, one line each."""
        return [*self._unknown_names(), *odd_listeners(self)]

    def _unknown_names(self) -> Iterator[str]:
        for name, given in sorted(self.unknown.items()):
            close = closest_name(name, BROKER_SETTINGS)
            meant = f"; did you mean {close}?" if close else ""
            yield f"{name}: unknown setting, ignored{meant} ({given.origin})"

    @cached_property
    def without_effect(self) -> tuple[str, ...]:
        """Settings that were given, are understood, and change nothing so far."""
        return tuple(name for name in sorted(self.given) if _is_idle(name))

    @cached_property
    def log_directories(self) -> tuple[Path, ...]:
        """log.dirs, else log.dir, as absolute paths. A relative path on the command line or in
        the environment starts at the current directory, any other at the broker's home."""
        name = "log.dirs" if self.log_dirs is not None else "log.dir"
        from_caller = self.source_of(name) in (Source.OVERRIDE, Source.ENVIRONMENT)
        base = Path.cwd() if from_caller else self.home
        return tuple(base / entry for entry in split_list(self[name]) if entry)

    @cached_property
    def bound_listeners(self) -> tuple[Listener, ...]:
        """Where to listen: listeners, else host.name and port."""
        if self.listeners is not None:
            return self._read_listeners("listeners", self.listeners)
        return self._read_listeners("port", f"PLAINTEXT://{self.host_name}:{self.port}")

    @cached_property
    def published_listeners(self) -> tuple[Listener, ...]:
        """What clients are told, as far as settings say: a host may be empty, a port 0."""
        if self.advertised_listeners is not None:
            return self._read_listeners("advertised.listeners", self.advertised_listeners)
        if self.advertised_host_name is None and self.advertised_port is None:
            return self.bound_listeners
        host = _first(self.advertised_host_name, self.host_name)
        port = _first(self.advertised_port, self.port)
        return self._read_listeners("advertised.port", f"PLAINTEXT://{host}:{port}")

    def _read_listeners(self, name: str, text: str) -> tuple[Listener, ...]:
        map_name = "listener.security.protocol.map"
        try:
            protocols = parse_protocol_map(self.listener_security_protocol_map)
        except InvalidValueError as error:
            raise self.error(map_name, str(error)) from None
        try:
            return parse_listeners(text, protocols)
        except InvalidValueError as error:
            raise self.error(name, str(error)) from None

    @cached_property
    def control_plane_listener(self) -> str:
        """The listener that takes the controller's requests."""
        return (self.control_plane_listener_name or self.inter_broker_listener).upper()

    @cached_property
    def inter_broker_listener(self) -> str:
        """The name of the listener over which brokers speak with each other."""
        name = self.inter_broker_listener_name
        return (name or self.security_inter_broker_protocol).upper()

    @property
    def effective_log_roll_ms(self) -> int:
        return _first(self.log_roll_ms, self.log_roll_hours * _MS_PER_HOUR)

    @property
    def effective_log_roll_jitter_ms(self) -> int:
        return _first(self.log_roll_jitter_ms, self.log_roll_jitter_hours * _MS_PER_HOUR)

    @property
    def effective_log_retention_ms(self) -> int:
        """Milliseconds before minutes before hours; -1 for ever."""
        minutes = self.log_retention_minutes
        by_minutes = None if minutes is None else minutes * _MS_PER_MINUTE
        by_hours = self.log_retention_hours * _MS_PER_HOUR
        return max(-1, _first(self.log_retention_ms, _first(by_minutes, by_hours)))

    @property
    def effective_log_flush_ms(self) -> int:
        return _first(self.log_flush_interval_ms, self.log_flush_scheduler_interval_ms)

    @property
    def effective_zookeeper_connection_timeout_ms(self) -> int:
        return _first(self.zookeeper_connection_timeout_ms, self.zookeeper_session_timeout_ms)


SECTIONS: Mapping[str, type] = {
    "ZooKeeper": ZooKeeperTable,
    "The broker": ServerTable,
    "Listeners and connections": NetworkTable,
    "Logs": LogTable,
    "Compaction": CleanerTable,
    "Replication": ReplicationTable,
    "Controller and shutdown": ControllerTable,
    "Requests": RequestTable,
    "Consumer groups": GroupTable,
    "Committed offsets": OffsetsTable,
    "Transactions": TransactionTable,
    "Quotas": QuotaTable,
    "Metrics": MetricsTable,
    "TLS": TlsTable,
    "SASL": SaslTable,
    "Secrets": SecretsTable,
}
"""The tables by the titles of the documentation."""

BROKER_SETTINGS: Mapping[str, Setting[Any]] = {
    setting.name: setting for table in SECTIONS.values() for setting in declarations(table)
}
"""Every setting of the broker by its Kafka name."""


def load_settings(
    file: Path | None = None,
    overrides: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> Settings:
    """Settings from a properties file, then KAFKA_* variables, then `name=value` overrides.

    Raises SettingsError. `home` is where relative directories of the file and of the defaults
    start: the current directory, unless told otherwise.
    """
    variables = os.environ if environment is None else environment
    collected = collect(BROKER_SETTINGS, file, overrides, variables)
    return Settings(collected, (home or Path.cwd()).absolute())


def _parse(setting: Setting[T], name: str, given: Given) -> T:
    try:
        return setting.parse(given.text)
    except InvalidValueError as error:
        shown = "[hidden]" if setting.is_secret else given.text
        unset = "absent" if setting.default is None else f"{setting.default!s}"
        why = f"{error}; the default is {unset}"
        raise SettingsError(name, shown, why, given.origin) from None


def listener_prefix(listener: str) -> str:
    """What stands before the name of a setting that is meant for one listener."""
    return f"listener.name.{listener.lower()}."


def _is_idle(name: str) -> bool:
    setting = BROKER_SETTINGS.get(name)
    if setting is None and name.startswith("listener.name."):
        plain = name.removeprefix("listener.name.").partition(".")[2]
        if plain.startswith("ssl.") or plain == "max.connections":
            setting = BROKER_SETTINGS.get(plain)
    return setting is None or setting.idle


def _check_passed_on(name: str, given: Given) -> None:
    """listener.name.NAME.SETTING is checked as SETTING is, where that is known."""
    prefix, _, rest = name.removeprefix("listener.name.").partition(".")
    if prefix and name.startswith("listener.name.") and rest in BROKER_SETTINGS:
        _parse(BROKER_SETTINGS[rest], name, given)


def _first(preferred: T | None, otherwise: T) -> T:
    return otherwise if preferred is None else preferred
