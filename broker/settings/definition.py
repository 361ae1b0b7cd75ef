"""What a setting is: its type, default, constraint, importance and how it is read from text.

Owns the declaration (`Setting`) and the constraints. Knows no particular setting: those are
declared in the tables beside this module, one line each.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Self, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class Kind(Enum):
    """The types of Kafka's ConfigDef, by the names that DescribeConfigs and tools show."""

    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    SHORT = "short"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Dynamic(Enum):
    """Where a setting may be changed while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class InvalidValueError(ValueError):
    """Why a text is no value of a setting; the caller knows the setting's name and the text."""


class Password:
    """A secret that shows itself only when asked by name."""

    __slots__ = ("secret",)

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.secret == self.secret

    def __hash__(self) -> int:
        return hash(self.secret)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A test of a parsed value and the words that complete 'must be ...'."""

    wanted: str
    holds: Callable[[Any], bool]


def at_least(minimum: int) -> Constraint:
    return Constraint(f"at least {minimum}", lambda value: value >= minimum)


def between(low: float, high: float) -> Constraint:
    return Constraint(f"between {low} and {high}", lambda value: low <= value <= high)


def one_of(*choices: str, fold_case: bool = False) -> Constraint:
    def holds(value: str) -> bool:
        return (value.lower() if fold_case else value) in choices

    return Constraint("one of " + ", ".join(choices), holds)


def all_of(*choices: str) -> Constraint:
    """For lists: every entry is one of the choices."""
    return Constraint("a list of " + ", ".join(choices), lambda value: set(value) <= set(choices))


class Setting(Generic[T_co]):
    """The one declaration of a setting. Declared on a class, it names itself after its attribute
    (`num_io_threads` is `num.io.threads`); an instance's own `__dict__` then shadows it, so that
    reading a setting costs no more than any attribute.
    """

    __slots__ = (
        "attribute",
        "constraint",
        "default",
        "documentation",
        "dynamic",
        "idle",
        "importance",
        "kind",
        "name",
    )

    def __init__(
        self,
        kind: Kind,
        default: T_co,
        importance: Importance,
        documentation: str,
        *,
        check: Constraint | None = None,
        dynamic: Dynamic = Dynamic.READ_ONLY,
        idle: bool = False,
        name: str = "",
    ) -> None:
        self.kind = kind
        self.default = default
        self.importance = importance
        self.documentation = documentation
        self.constraint = check
        self.dynamic = dynamic
        self.idle = idle  # recognised and checked, but without effect so far
        self.name = name
        self.attribute = ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.name = self.name or attribute.replace("_", ".")

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T_co:
        return self if instance is None else self.default

    def parse(self, text: str) -> T_co:
        """The value that the text stands for; raises InvalidValueError."""
        value: T_co = _PARSERS[self.kind](text.strip())
        if self.constraint is not None and not self.constraint.holds(value):
            raise InvalidValueError(f"must be {self.constraint.wanted}")
        return value

    @property
    def is_secret(self) -> bool:
        return self.kind is Kind.PASSWORD

    def __repr__(self) -> str:
        return f"<Setting {self.name}>"


def declarations(owner: type) -> list[Setting[Any]]:
    """Every setting declared on a class and its bases, in the order of declaration."""
    found: dict[str, Setting[Any]] = {}
    for base in reversed(owner.__mro__):
        for value in vars(base).values():
            if isinstance(value, Setting):
                found[value.name] = value
    return list(found.values())


def to_text(value: Any) -> str | None:
    """A value as Kafka writes it; `parse` reads it back. None is what is not set, or a secret."""
    if value is None or isinstance(value, Password):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, tuple | list):
        return ",".join(value)
    return str(value)


def _java_double(value: float) -> str:
    """Java goes over to exponents earlier than Python, and writes them in another way."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits, _, exponent = f"{value:.16e}".partition("e")
        mantissa = digits.rstrip("0")
    if "." not in mantissa or mantissa.endswith("."):
        mantissa = f"{mantissa.rstrip('.')}.0"
    return f"{mantissa}E{int(exponent)}"


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|Infinity)", re.ASCII)


def _parse_boolean(text: str) -> bool:
    folded = text.lower()
    if folded not in ("true", "false"):
        raise InvalidValueError("must be true or false")
    return folded == "true"


def _integer_of(bits: int) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise InvalidValueError("must be a whole number")
        value = int(text)
        if not -limit <= value < limit:
            raise InvalidValueError(f"must be a whole number from {-limit} to {limit - 1}")
        return value

    return parse


def _parse_decimal(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise InvalidValueError("must be a number")
    return float(text)


def split_list(text: str) -> tuple[str, ...]:
    """Entries between commas, without the blanks around them; an empty text has none."""
    stripped = text.strip()
    return tuple(entry.strip() for entry in stripped.split(",")) if stripped else ()


_PARSERS: dict[Kind, Callable[[str], Any]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.STRING: str,
    Kind.INT: _integer_of(32),
    Kind.SHORT: _integer_of(16),
    Kind.LONG: _integer_of(64),
    Kind.DOUBLE: _parse_decimal,
    Kind.LIST: split_list,
    Kind.CLASS: str,
    Kind.PASSWORD: Password,
}
