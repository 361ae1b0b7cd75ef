"""Compiles the reading of arrays: of numbers, of strings, of structs.

Where the count of an array ends a run, the first run of its first element has been fetched with
it. Elements of one size are read in one sweep, those that are often of one size in as few as
possible, all others one by one.
"""

from abc import ABC, abstractmethod
from functools import cache
from typing import Any

from network.protocol import primitives
from network.protocol.compiler.plan import (
    FIXED,
    Array,
    Region,
    Run,
    Sized,
    Value,
    codes_of,
    length_code,
    minimal_size,
    size_of,
)
from network.protocol.compiler.runs import Rest, RunCompiler, field_name, local_names, position
from network.protocol.compiler.source import Source
from network.protocol.compiler.sweep import Sweeps, can_be_swept, shape_source
from network.protocol.schema import Kind

# From so many elements on, a sweep may pay before the shape of the first one is known.
WORTH_A_SWEEP = 4


class ArrayCompiler(RunCompiler, ABC):
    """Writes the statements that read arrays; what reads their elements is given by others."""

    def __init__(
        self, source: Source, version: int, *, flexible: bool, classes: dict[str, Any]
    ) -> None:
        super().__init__(source, version, flexible=flexible)
        self.classes = classes

    @abstractmethod
    def read_region(self, region: Region, after: int, *, fetched: bool = False) -> None:
        """Read a struct."""

    @abstractmethod
    def read_sized(self, reading: Sized, at: int) -> None:
        """Read a string, bytes or batches at the end of a run."""

    def read_unlikely_array(self, array: Array, at: int, rest: Rest) -> None:
        """Read an array of structs within a run."""
        count = array.variable
        with self.block(f"if {count} > {1 if self.flexible else 0}:"):
            if self.flexible:
                self.widen(count, at)
                self.line(f"{count} -= 1")
            self.line(f"pos += {at}")
            self.check_count(array)
            self.read_structs(array, Rest([], [], rest.remaining))
            self.line(f"pos -= {at}")
            self.fetch_again(rest, at)
        present = f"{count} == 1" if self.flexible else f"{count} == 0"
        with self.block(f"elif {present}:"):
            self.line(f"{array.target} = []")
        with self.block("else:"):
            if array.nullable:
                self.line(f"{array.target} = None")
            else:
                self.line(f"raise bad_count({field_name(array.target)!r}, -1, size - pos)")

    def read_array(self, array: Array, at: int, following: Run, rest: Rest) -> bool:
        """Read an array at the end of a run; returns whether the following run was fetched."""
        if array.field.element in FIXED and not array.nullable:
            self.read_values(array, at, following)
            return bool(following)
        count = array.variable
        if self.flexible:
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, pos = widen_uvarint({count}, data, pos, {at})")
                if rest.ahead:
                    self.fetch(rest.ahead, position(at), local_names(rest.ahead))
            self.line(f"{count} -= 1")
        self.line(f"pos += {at}")
        if array.nullable:
            with self.block(f"if {count} < 0:"):
                self.line(f"{array.target} = None")
            with self.block("else:"):
                self.check_count(array)
                self.read_elements(array, rest)
        else:
            self.check_count(array)
            self.read_elements(array, rest)
        return False

    def check_count(self, array: Array) -> None:
        """Refuse a count that the rest of the frame cannot hold, before anything is allocated."""
        least = self.element_size(array)
        needed = array.variable if least == 1 else f"{array.variable} * {least}"
        negative = "" if array.nullable else f" or {array.variable} < 0"
        with self.block(f"if {needed} > size - pos{negative}:"):
            name = field_name(array.target)
            self.line(f"raise bad_count({name!r}, {array.variable}, size - pos)")

    def element_size(self, array: Array) -> int:
        """The fewest bytes of an element; at least one, or a count could ask for any memory."""
        if array.field.struct is not None:
            return max(1, minimal_size(array.field.struct, self.version, self.flexible))
        return size_of([Value("", self.element_code(array))])

    def element_code(self, array: Array) -> str:
        assert array.field.element is not None
        return length_code(array.field.element, self.flexible)

    def read_values(self, array: Array, at: int, following: Run) -> None:
        """Read an array of fixed-width values, together with the run behind it.

        Its count is not checked: no layout can be made of a negative one, and one that is too
        large is refused by `unpack_from`.
        """
        count = array.variable
        if self.flexible:
            self.widen(count, at)
        code = self.element_code(array)
        readers = f"series_of_{code}_{codes_of(following)}".replace("?", "_")
        self.source.namespace[readers] = series_readers(
            code, codes_of(following), int(self.flexible)
        )
        series = f"{readers}[{count}](data, {position(at)})"
        if following:
            names = ", ".join(reading.variable for reading in following)
            self.line(f"*{array.target}, {names} = {series}")
        else:
            self.line(f"{array.target} = [*{series}]")
        size = size_of([Value("", code)])
        self.line(f"pos += {count} * {size} + {at - size if self.flexible else at}")

    def read_elements(self, array: Array, rest: Rest) -> None:
        """Read what a count that stands at the end of a run announces."""
        if array.element is not None:
            self.read_structs(array, rest)
        elif array.field.element is Kind.STRING:
            self.read_strings(array)
        else:
            code = self.element_code(array)
            self.source.namespace[f"series_of_{code}"] = series_readers(code, "", 0)
            self.line(f"{array.target} = [*series_of_{code}[{array.variable}](data, pos)]")
            self.line(f"pos += {array.variable} * {size_of([Value('', code)])}")

    def read_strings(self, array: Array) -> None:
        items, item, length = (self.source.new_name(name) for name in ("items", "item", "n"))
        reading = Sized(item, Kind.STRING, False, length, self.element_code(array))
        self.line(f"{array.target} = {items} = []")
        with self.block(f"while {array.variable}:"):
            self.line(f"{array.variable} -= 1")
            self.fetch([reading], "pos", [length])
            self.read_sized(reading, size_of([reading]))
            self.line(f"{items}.append({item})")

    def read_structs(self, array: Array, rest: Rest) -> None:
        element = array.element
        assert element is not None
        items = self.source.new_name("items")
        self.line(f"{array.target} = {items} = []")
        if element.is_fixed():
            self.read_fixed_structs(items, array, element, fetched=bool(rest.ahead))
        elif rest.ahead:
            self.read_structs_ahead(items, array, element, rest)
        else:
            with self.block(f"while {array.variable}:"):
                self.line(f"{array.variable} -= 1")
                self.read_region(element, rest.remaining)
                self.line(f"{items}.append({element.owner})")
                self.sweep_like_last(items, array, element)

    def sweep_like_last(self, items: str, array: Array, element: Region) -> None:
        """Read what is shaped like the element that was read last."""
        if can_be_swept(element):
            sweeps = self.sweeps_of(array, element)
            self.line(f"{sweeps}.last = {sweeps}[{shape_source(element)}]")
            left = f"{sweeps}.last(data, pos, {array.variable}, {items})"
            self.line(f"{array.variable}, pos = {left}")

    def sweeps_of(self, array: Array, element: Region) -> str:
        name = f"sweeps_{array.variable}"
        if name not in self.source.namespace:
            sweeps = Sweeps(element, self.classes, int(self.flexible))
            self.source.namespace[name] = sweeps
        return name

    def read_structs_ahead(self, items: str, array: Array, element: Region, rest: Rest) -> None:
        """Read structs of which the first run of the first one is fetched already."""
        count = array.variable
        if can_be_swept(element):
            with self.block(f"if {count} >= {WORTH_A_SWEEP}:"):
                left = f"{self.sweeps_of(array, element)}.last(data, pos, {count}, {items})"
                self.line(f"{count}, pos = {left}")
                with self.block(f"if {count}:"):
                    self.fetch(rest.ahead, "pos", local_names(rest.ahead))
        with self.block(f"if {count}:"), self.block("while True:"):
            self.set_up(element)
            self.take_locals(rest.ahead)
            self.read_region(element, rest.remaining, fetched=True)
            self.line(f"{items}.append({element.owner})")
            self.line(f"{count} -= 1")
            with self.block(f"if not {count}:"):
                self.line("break")
            if can_be_swept(element):
                self.sweep_like_last(items, array, element)
                with self.block(f"if not {count}:"):
                    self.line("break")
            self.fetch(rest.ahead, "pos", local_names(rest.ahead))

    def read_fixed_structs(
        self, items: str, array: Array, element: Region, *, fetched: bool
    ) -> None:
        """Read structs of one size, all but the one that is fetched already in one sweep."""
        run = element.readings
        size, count = size_of(run), array.variable
        names = local_names(run)
        if fetched:
            with self.block(f"if {count}:"):
                self.set_up(element)
                self.take_locals(run)
                self.line(f"{items}.append({element.owner})")
                self.line(f"pos += {size}")
                self.line(f"{count} -= 1")
        with self.block(f"if {count}:"):
            self.line("start = pos")
            self.line(f"pos += {count} * {size}")
            sweep = self.source.layout(codes_of(run), "iter_unpack")
            with self.block(f"for {', '.join(names)}, in {sweep}(data[start:pos]):"):
                self.set_up(element)
                self.take_locals(run)
                self.line(f"{items}.append({element.owner})")


@cache
def series_readers(code: str, suffix: str, bias: int) -> primitives.SeriesReaders:
    """The readers of series of one type with what follows them, shared by all decoders."""
    return primitives.SeriesReaders(code, suffix, bias)
