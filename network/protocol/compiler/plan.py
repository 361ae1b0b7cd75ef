"""The order in which a decoder reads a message: fields become readings, readings become runs.

A reading is what stands at one place of the wire: a fixed-width value, or the length, count or
marker with which a field of variable size begins. A run is a series of readings that one
`unpack_from` fetches. A run goes on behind a field of variable size where that is likely to be
empty: if it is not, the rest of the run is fetched again, from where it really stands.

Knows the notation, but writes no source.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from struct import calcsize
from typing import TypeAlias

from network.protocol.schema import Field, Kind, Struct, default_source

FIXED = frozenset(
    {Kind.BOOLEAN, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT64, Kind.UUID}
)


@dataclass(slots=True)
class Value:
    """A fixed-width value, read straight into `variable`."""

    variable: str
    code: str

    likely_empty = False


@dataclass(slots=True)
class Sized:
    """The length of a string, of bytes or of record batches."""

    target: str
    kind: Kind
    nullable: bool
    variable: str
    code: str

    @property
    def likely_empty(self) -> bool:
        return self.nullable and self.kind is not Kind.BATCHES


@dataclass(slots=True)
class Array:
    """The count of an array; an array of structs knows how its elements are read."""

    target: str
    field: Field
    nullable: bool
    variable: str
    code: str
    element: "Region | None" = None

    @property
    def likely_empty(self) -> bool:
        return self.element is not None and (self.nullable or self.field.ignorable)


@dataclass(slots=True)
class NullableStruct:
    """The marker before a struct that may be null."""

    target: str
    struct: "Region"
    variable: str
    code: str = "b"

    likely_empty = False


@dataclass(slots=True)
class Tags:
    """The number of tagged fields at the end of a struct."""

    fields: list[tuple[Field, "Region"]]
    variable: str
    code: str = "B"

    likely_empty = True


Reading: TypeAlias = Value | Sized | Array | NullableStruct | Tags
Run: TypeAlias = list[Reading]


@dataclass(slots=True)
class Region:
    """Readings that follow each other without a branch; `owner` is the struct they fill."""

    owner: str
    struct: type[Struct]
    setup: list[str] = dataclasses.field(default_factory=list)
    readings: list[Reading] = dataclasses.field(default_factory=list)

    def runs(self) -> list[Run]:
        """The readings, cut behind each field that is not likely to be empty."""
        runs: list[Run] = [[]]
        for reading in self.readings:
            runs[-1].append(reading)
            if not isinstance(reading, Value) and not reading.likely_empty:
                runs.append([])
        return runs if runs[-1] else runs[:-1]

    def is_fixed(self) -> bool:
        """Whether all elements of an array of these have the same size."""
        return all(isinstance(reading, Value) for reading in self.readings)


class Planner:
    """Lays out the readings of one version of a message."""

    def __init__(self, version: int, flexible: bool, new_name: Callable[[str], str]) -> None:
        self.version = version
        self.flexible = flexible
        self.new_name = new_name
        self.structs: set[type[Struct]] = set()

    def region(self, owner: str, struct: type[Struct]) -> Region:
        """The readings of a struct that a new local variable `owner` will hold."""
        region = Region(owner, struct, [f"{owner} = new_{struct.__name__}()"])
        self._add_struct(region, owner, struct)
        return region

    def _add_struct(self, region: Region, owner: str, struct: type[Struct]) -> None:
        self.structs.add(struct)
        tagged: list[Field] = []
        for field in struct.FIELDS:
            target = f"{owner}.{field.name}"
            present = self.version in field.versions
            if not present or field.tag is not None:
                if field.struct is not None:
                    self.structs.add(field.struct)
                region.setup.append(f"{target} = {default_source(field)}")
            if present and field.tag is not None:
                tagged.append(field)
            elif present:
                self._add_field(region, target, field)
        if self.flexible:
            region.readings.append(self._tags(owner, tagged))

    def _tags(self, owner: str, tagged: list[Field]) -> Tags:
        fields = []
        for field in tagged:
            alone = Region(owner, Struct)
            self._add_field(alone, f"{owner}.{field.name}", field)
            fields.append((field, alone))
        return Tags(fields, self.new_name("tags"))

    def _add_field(self, region: Region, target: str, field: Field) -> None:
        nullable = self.version in field.nullable
        code = length_code(field.kind, self.flexible)
        if field.kind in FIXED:
            region.readings.append(Value(target, code))
        elif field.kind is Kind.ARRAY:
            element = None
            count = self.new_name("n")
            if field.struct is not None:
                element = self.region(self.new_name("item"), field.struct)
            region.readings.append(Array(target, field, nullable, count, code, element))
        elif field.struct is not None:
            inner = self.new_name("struct")
            if nullable:
                struct = self.region(inner, field.struct)
                region.readings.append(NullableStruct(target, struct, self.new_name("marker")))
            else:
                region.setup.append(f"{target} = {inner} = new_{field.struct.__name__}()")
                self._add_struct(region, inner, field.struct)
        else:
            length = self.new_name("n")
            region.readings.append(Sized(target, field.kind, nullable, length, code))


def codes_of(run: Iterable[Reading]) -> str:
    """The layout of a run."""
    return "".join(reading.code for reading in run)


def size_of(run: Iterable[Reading]) -> int:
    """The bytes of a run, which are the fewest that what it reads can take."""
    return calcsize(f">{codes_of(run)}")


def minimal_size(struct: type[Struct], version: int, flexible: bool) -> int:
    """The fewest bytes in which a struct can be encoded."""
    return flexible + sum(
        minimal_field_size(field, version, flexible)
        for field in struct.FIELDS
        if version in field.versions and field.tag is None
    )


def minimal_field_size(field: Field, version: int, flexible: bool) -> int:
    """The fewest bytes in which a field can be encoded."""
    if field.kind is Kind.STRUCT and field.struct is not None:
        return 1 if version in field.nullable else minimal_size(field.struct, version, flexible)
    return calcsize(f">{length_code(field.kind, flexible)}")


def length_code(kind: Kind, flexible: bool) -> str:
    """The layout of a fixed-width value, or of the length with which another one begins."""
    if kind in FIXED:
        return str(kind.value)
    if flexible:
        return "B"
    return "h" if kind is Kind.STRING else "i"


def has_batches(struct: type[Struct], version: int) -> bool:
    """Whether a version of a struct holds record batches anywhere."""
    return any(
        field.kind is Kind.BATCHES
        or (field.struct is not None and has_batches(field.struct, version))
        for field in struct.FIELDS
        if version in field.versions
    )
