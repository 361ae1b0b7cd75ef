"""Compiles what reads many elements of one shape in one sweep.

The elements of an array are often alike: a thousand partitions, each with three replicas, three
of them in sync and none offline. An element that holds only fixed-width values and arrays of
them has a fixed layout once the counts of its arrays are known, its shape. When one element has
been read, the sweep of its shape takes all that follow and are like it, and stops at the first
that is not.

A sweep is `sweep(data, pos, count, items)`: it appends what it reads to `items` and returns how
many of the `count` elements are still to be read, and the position where they begin.
"""

from collections.abc import Callable
from struct import Struct as Layout
from typing import Any, TypeAlias

from network.protocol.compiler.plan import FIXED, Array, Region, Tags, Value
from network.protocol.compiler.source import Source

Sweep: TypeAlias = Callable[[Any, int, int, list[Any]], tuple[int, int]]
Shape: TypeAlias = tuple[int, ...]

# What is not worth a sweep of its own: arrays this long, and shapes this numerous.
LONGEST_ARRAY = 16
MOST_SHAPES = 64


def can_be_swept(region: Region) -> bool:
    """Whether an element has a fixed layout once the counts in it are known."""
    return all(
        isinstance(reading, Value)
        or (isinstance(reading, Tags) and not reading.fields)
        or (isinstance(reading, Array) and not reading.nullable and reading.field.element in FIXED)
        for reading in region.readings
    )


def shape_source(region: Region) -> str:
    """The expression of the shape of the element that was read last."""
    counts = [reading.variable for reading in region.readings if isinstance(reading, Array)]
    return f"({''.join(f'{count}, ' for count in counts)})"


class Sweeps(dict[Shape, Sweep]):
    """The sweeps of one kind of element, compiled as their shapes turn up.

    A shape has the counts as they stand on the wire, which is one more than the elements in
    compact arrays: `bias`. `last` is the sweep of the latest shape: most likely the next one's.
    """

    def __init__(self, region: Region, namespace: dict[str, Any], bias: int) -> None:
        self.region = region
        self.element_namespace = namespace
        self.bias = bias
        self.last: Sweep = sweep_nothing

    def __missing__(self, shape: Shape) -> Sweep:
        if len(self) >= MOST_SHAPES or any(count > LONGEST_ARRAY for count in shape):
            return sweep_nothing
        sweep = self[shape] = self.compile(shape)
        return sweep

    def compile(self, shape: Shape) -> Sweep:
        source = Source(**self.element_namespace)
        counts = iter(shape)
        codes, names, stores, differences = "", list[str](), list[str](), list[str]()
        for reading in self.region.readings:
            codes += reading.code
            name = reading.variable.replace(".", "_")
            names.append(name)
            if isinstance(reading, Value):
                stores.append(f"{reading.variable} = {name}")
            elif isinstance(reading, Array) and reading.field.element is not None:
                count = next(counts)
                differences.append(f"{name} != {count}")
                values = [f"{name}_{i}" for i in range(count - self.bias)]
                codes += str(reading.field.element.value) * len(values)
                names += values
                stores.append(f"{reading.target} = [{', '.join(values)}]")
            else:
                differences.append(name)
        layout = Layout(f">{codes}")
        source.namespace["iter_unpack"] = layout.iter_unpack
        with source.block("def sweep(data, pos, count, items):"):
            source.line(f"end = pos + count * {layout.size}")
            with source.block("if end > len(data):"):
                source.line(f"end = len(data) - (len(data) - pos) % {layout.size}")
            source.line("known = len(items)")
            with source.block(f"for {', '.join(names)}, in iter_unpack(data[pos:end]):"):
                if differences:
                    with source.block(f"if {' or '.join(differences)}:"):
                        source.line("break")
                for statement in (*self.region.setup, *stores):
                    source.line(statement)
                source.line(f"items.append({self.region.owner})")
            source.line("taken = len(items) - known")
            source.line(f"return count - taken, pos + taken * {layout.size}")
        return source.compile("sweep", f"{self.region.struct.__name__} {shape} sweep")


def sweep_nothing(data: Any, pos: int, count: int, items: list[Any]) -> tuple[int, int]:
    """The sweep of a shape that has none."""
    return count, pos
