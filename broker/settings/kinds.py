"""The words in which the tables declare settings: one constructor for each of Kafka's types.

Each takes the default, the importance and the documentation, then the options of `Setting`.
A default of None means that the setting may be absent, and the type says so.
"""

from typing import TypedDict, Unpack, overload

from broker.settings.definition import Constraint, Dynamic, Importance, Kind, Password, Setting

HIGH = Importance.HIGH
MEDIUM = Importance.MEDIUM
LOW = Importance.LOW
PER_BROKER = Dynamic.PER_BROKER
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Options(TypedDict, total=False):
    check: Constraint
    dynamic: Dynamic
    idle: bool
    name: str


def boolean(
    default: bool, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[bool]:
    return Setting(Kind.BOOLEAN, default, importance, documentation, **options)


@overload
def integer(
    default: None, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[int | None]: ...
@overload
def integer(
    default: int, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[int]: ...
def integer(
    default: int | None, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[int | None]:
    return Setting(Kind.INT, default, importance, documentation, **options)


def short(
    default: int, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[int]:
    return Setting(Kind.SHORT, default, importance, documentation, **options)


@overload
def long(
    default: None, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[int | None]: ...
@overload
def long(
    default: int, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[int]: ...
def long(
    default: int | None, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[int | None]:
    return Setting(Kind.LONG, default, importance, documentation, **options)


def double(
    default: float, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[float]:
    return Setting(Kind.DOUBLE, default, importance, documentation, **options)


@overload
def string(
    default: None, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[str | None]: ...
@overload
def string(
    default: str, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[str]: ...
def string(
    default: str | None, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[str | None]:
    return Setting(Kind.STRING, default, importance, documentation, **options)


@overload
def words(
    default: None, importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[tuple[str, ...] | None]: ...
@overload
def words(
    default: tuple[str, ...], importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[tuple[str, ...]]: ...
def words(
    default: tuple[str, ...] | None,
    importance: Importance,
    documentation: str,
    **options: Unpack[Options],
) -> Setting[tuple[str, ...] | None]:
    return Setting(Kind.LIST, default, importance, documentation, **options)


def class_name(
    importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[str | None]:
    return Setting(Kind.CLASS, None, importance, documentation, **options)


def password(
    importance: Importance, documentation: str, **options: Unpack[Options]
) -> Setting[Password | None]:
    return Setting(Kind.PASSWORD, None, importance, documentation, **options)
