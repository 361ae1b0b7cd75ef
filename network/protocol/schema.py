"""The notation in which messages are declared, and the objects that it makes.

    class FetchPartition(Struct):
        partition: int = int32()
        current_leader_epoch: int = int32("9+", default=-1, ignorable=True)

Each field states once its type, the versions that carry it ("0+" when left out), where it may
be null, its default, its tag and whether it may be dropped silently by a version without it.
A class becomes a slotted object whose constructor takes any field by keyword.

Owns the declarations only: turning them into codecs is the work of `decoder` and `encoder`.
"""

from collections.abc import Callable, Sized
from enum import Enum
from functools import cache
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from network.protocol.api_keys import ApiKey
from network.protocol.versions import NONE, Versions, parse_versions

T = TypeVar("T")
S = TypeVar("S", bound="Struct")

ZERO_UUID = bytes(16)


class Kind(Enum):
    """The types of the wire; the value of a fixed-width one is its `struct` code."""

    BOOLEAN = "?"
    INT8 = "b"
    INT16 = "h"
    INT32 = "i"
    INT64 = "q"
    FLOAT64 = "d"
    UUID = "16s"
    STRING = "string"
    BINARY = "binary"
    BATCHES = "batches"
    STRUCT = "struct"
    ARRAY = "array"


class Field:
    """One declared field; `element` is an array's item or a struct's own type."""

    __slots__ = (
        "default",
        "element",
        "ignorable",
        "kind",
        "name",
        "nullable",
        "struct",
        "tag",
        "versions",
    )

    def __init__(
        self,
        kind: Kind,
        versions: str,
        *,
        null: str = "none",
        default: object = None,
        tag: int | None = None,
        ignorable: bool = False,
        element: "Kind | None" = None,
        struct: "type[Struct] | None" = None,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.versions = parse_versions(versions)
        self.nullable = parse_versions(null)
        self.default = default
        self.tag = tag
        self.ignorable = ignorable
        self.element = element
        self.struct = struct

    def __repr__(self) -> str:
        return f"<Field {self.name}: {self.kind.name.lower()} [{self.versions}]>"


def boolean(
    versions: str = "0+", *, default: bool = False, tag: int | None = None, ignorable: bool = False
) -> bool:
    """One byte, zero for false."""
    field = Field(Kind.BOOLEAN, versions, default=default, tag=tag, ignorable=ignorable)
    return cast("bool", field)


def int8(
    versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """A signed integer of one byte."""
    field = Field(Kind.INT8, versions, default=default, tag=tag, ignorable=ignorable)
    return cast("int", field)


def int16(
    versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """A signed integer of two bytes."""
    field = Field(Kind.INT16, versions, default=default, tag=tag, ignorable=ignorable)
    return cast("int", field)


def int32(
    versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """A signed integer of four bytes."""
    field = Field(Kind.INT32, versions, default=default, tag=tag, ignorable=ignorable)
    return cast("int", field)


def int64(
    versions: str = "0+", *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """A signed integer of eight bytes."""
    field = Field(Kind.INT64, versions, default=default, tag=tag, ignorable=ignorable)
    return cast("int", field)


def float64(versions: str = "0+", *, default: float = 0.0, ignorable: bool = False) -> float:
    """A double of eight bytes."""
    return cast("float", Field(Kind.FLOAT64, versions, default=default, ignorable=ignorable))


def uuid(versions: str = "0+", *, tag: int | None = None, ignorable: bool = False) -> bytes:
    """Sixteen bytes, handed on as they are; all zero when there is none."""
    field = Field(Kind.UUID, versions, default=ZERO_UUID, tag=tag, ignorable=ignorable)
    return cast("bytes", field)


def string(
    versions: str = "0+",
    *,
    null: str = "none",
    default: str | None = "",
    tag: int | None = None,
    ignorable: bool = False,
) -> str:
    """UTF-8 text behind its length."""
    field = Field(Kind.STRING, versions, null=null, default=default, tag=tag, ignorable=ignorable)
    return cast("str", field)


def binary(
    versions: str = "0+",
    *,
    null: str = "none",
    default: bytes | None = b"",
    ignorable: bool = False,
) -> bytes:
    """Bytes behind their length, copied out of the received buffer."""
    field = Field(Kind.BINARY, versions, null=null, default=default, ignorable=ignorable)
    return cast("bytes", field)


def batches(versions: str = "0+", *, null: str = "none") -> Any:
    """Record batches behind their length in bytes, never copied.

    Decoded they are a memoryview of the received buffer; to be encoded they may be anything
    that has a length, and what is not bytes travels as a part of its own.
    """
    return Field(Kind.BATCHES, versions, null=null)


def struct(
    of: type[S],
    versions: str = "0+",
    *,
    null: str = "none",
    tag: int | None = None,
    ignorable: bool = False,
) -> S:
    """A nested struct; one that is tagged or nullable is None until it is set."""
    field = Field(Kind.STRUCT, versions, null=null, tag=tag, ignorable=ignorable, struct=of)
    return cast("S", field)


def array(
    of: Callable[..., T],
    versions: str = "0+",
    *,
    null: str = "none",
    default: list[T] | None = [],  # noqa: B006 - a marker, copied for each message
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T]:
    """A counted list of structs or of one of the simple types, given as its declaring function."""
    is_struct = isinstance(of, StructType)
    field = Field(
        Kind.ARRAY,
        versions,
        null=null,
        default=default,
        tag=tag,
        ignorable=ignorable,
        element=Kind.STRUCT if is_struct else _ELEMENTS[of],
        struct=cast("type[Struct]", of) if is_struct else None,
    )
    return cast("list[T]", field)


_ELEMENTS: dict[object, Kind] = {
    int32: Kind.INT32,
    int64: Kind.INT64,
    string: Kind.STRING,
}


def _compile_and_construct(self: "Struct", **values: Any) -> None:
    """The constructor of a class until it is first used; then the real one is compiled."""
    cls = type(self)
    cls.__init__ = compile_constructor(cls)  # type: ignore[method-assign]
    cls.__init__(self, **values)


@dataclass_transform(kw_only_default=True, eq_default=True)
class StructType(type):
    """Turns the declared fields of a class into slots and a keyword constructor."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "StructType":
        fields = tuple(value for value in namespace.values() if isinstance(value, Field))
        for field_name in [key for key, value in namespace.items() if isinstance(value, Field)]:
            namespace.pop(field_name).name = field_name
        namespace["FIELDS"] = fields
        namespace["__slots__"] = tuple(field.name for field in fields)
        # Each class has its own, lest the one compiled for a base serve those below it.
        namespace.setdefault("__init__", _compile_and_construct)
        return super().__new__(mcs, name, bases, namespace, **options)


class Struct(metaclass=StructType):
    """What every message and every struct within one can do."""

    FIELDS: ClassVar[tuple[Field, ...]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or other.FIELDS is not self.FIELDS:
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{f.name}={_shown(f, getattr(self, f.name))}" for f in self.FIELDS)
        return f"{type(self).__name__}({', '.join(shown)})"


def _shown(field: Field, value: object) -> str:
    if field.kind is Kind.BATCHES and value is not None:
        return f"<{len(cast('Sized', value))} bytes>"
    return repr(value)


class Message(Struct):
    """A top-level struct, which has versions; of a request or a response, or standing alone."""

    VERSIONS: ClassVar[Versions]
    FLEXIBLE: ClassVar[Versions]

    def __init_subclass__(cls, *, versions: str | None = None, flexible: str = "none") -> None:
        # Without versions a subclass declares no message of its own.
        if versions is not None:
            cls.VERSIONS = parse_versions(versions)
            cls.FLEXIBLE = parse_versions(flexible)


class ApiMessage(Message):
    """A message that is sent alone in a frame."""

    API_KEY: ClassVar[ApiKey]

    def __init_subclass__(
        cls, *, api: ApiKey | None = None, versions: str | None = None, flexible: str = "none"
    ) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        if api is not None:
            cls.API_KEY = api


class Request(ApiMessage):
    """What a client asks."""


class Response(ApiMessage):
    """What a broker answers."""


@cache
def blank_class(struct: type[S]) -> type[S]:
    """A subclass of a struct that makes instances with no field set.

    It has no constructor of its own, which makes it the fastest way to an object in CPython:
    40 ns less than `object.__new__`, for each of thousands of objects in a large message.
    """
    namespace = {
        "__slots__": (),
        "__init__": object.__init__,
        "__module__": struct.__module__,
        "__qualname__": struct.__qualname__,
        "FIELDS": struct.FIELDS,
    }
    return type.__new__(type(struct), struct.__name__, (struct,), namespace)


def default_source(field: Field) -> str:
    """The Python expression of a field's default; a new object each time for mutable ones."""
    if field.kind is Kind.STRUCT and field.tag is None and field.nullable == NONE:
        return f"{field.struct.__name__}()" if field.struct else ""
    if field.kind is Kind.ARRAY:
        return "None" if field.default is None else "[]"
    return "ZERO_UUID" if field.kind is Kind.UUID else repr(field.default)


def compile_constructor(cls: type[Struct]) -> Callable[..., None]:
    """Build `__init__(self, *, field=default, ...)` for a struct."""
    namespace: dict[str, Any] = {"ZERO_UUID": ZERO_UUID, "UNSET": object()}
    parameters, body = [], []
    for field in cls.FIELDS:
        default = default_source(field)
        if field.struct is not None:
            namespace[field.struct.__name__] = field.struct
        if default.endswith(("()", "[]")):
            parameters.append(f"{field.name}=UNSET")
            value = f"{default} if {field.name} is UNSET else {field.name}"
        else:
            parameters.append(f"{field.name}={default}")
            value = field.name
        body.append(f"    self.{field.name} = {value}\n")
    signature = f"self, *, {', '.join(parameters)}" if parameters else "self"
    source = f"def __init__({signature}):\n{''.join(body) or '    pass'}"
    exec(compile(source, f"<{cls.__name__} constructor>", "exec"), namespace)
    return cast("Callable[..., None]", namespace["__init__"])
