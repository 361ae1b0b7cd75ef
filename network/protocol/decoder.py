"""Compiles the decoder of one message in one version to Python source.

The source is one flat function: nested structs and arrays become nested loops, and each run of
a `plan` becomes one `unpack_from`. Where a run ends with the count of an array of structs, the
start of the first element is fetched along with it.

Lengths are not compared with the end of the frame one by one. A slice past the end is short
and costs nothing, the position never goes back, and whoever reads behind the end raises or is
caught by the check at the end. Only counts are checked where they stand, since they allocate.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from network.protocol import primitives
from network.protocol.plan import (
    FIXED,
    Array,
    Optional,
    Planner,
    Reading,
    Region,
    Run,
    Sized,
    Tags,
    Value,
    codes_of,
    has_batches,
    length_code,
    minimal_size,
    size_of,
)
from network.protocol.schema import ZERO_UUID, Kind, Message, blank_class
from network.protocol.source import Source

Decode = Callable[[memoryview, int], Any]

# Up to this size a copy of the frame as bytes is cheaper than reading through a memoryview.
COPY_LIMIT = 4096


def compile_decoder(message: type[Message], version: int) -> Decode:
    """Build `decode(view, pos)`, which reads one message that ends where the view ends."""
    copying = DecoderCompiler(message, version, copies=True).compile()
    if not has_batches(message, version):
        return copying
    viewing = DecoderCompiler(message, version, copies=False).compile()

    def decode(view: memoryview, pos: int) -> Any:
        return copying(view, pos) if len(view) <= COPY_LIMIT else viewing(view, pos)

    return decode


class DecoderCompiler:
    """Writes the statements that read the runs of a message."""

    def __init__(self, message: type[Message], version: int, *, copies: bool) -> None:
        self.message = message
        self.version = version
        self.copies = copies
        self.flexible = version in message.FLEXIBLE
        self.source = Source(
            ZERO_UUID=ZERO_UUID,
            read_uvarint=primitives.read_uvarint,
            widen_uvarint=primitives.widen_uvarint,
            skip_tagged_fields=primitives.skip_tagged_fields,
            bad_length=primitives.bad_length,
            bad_count=primitives.bad_count,
            bad_tag_size=primitives.bad_tag_size,
            bad_end=primitives.bad_end,
        )
        self.line = self.source.line
        self.block = self.source.block

    def compile(self) -> Decode:
        planner = Planner(self.version, self.flexible, self.source.new_name)
        region = planner.region("message", self.message)
        for struct in planner.structs:
            self.source.namespace[struct.__name__] = struct
            self.source.namespace[f"new_{struct.__name__}"] = blank_class(struct)
        with self.block("def decode(view, pos):"):
            self.line("size = len(view)")
            self.line("data = view.tobytes()" if self.copies else "data = view")
            self.read_region(region, after=0)
            with self.block("if pos != size:"):
                self.line("raise bad_end(pos, size)")
            self.line("return message")
        return self.source.compile("decode", f"{self.message.__name__} v{self.version} decoder")

    # Runs. At the start and the end of each, `pos` is the present position. Within one it stays
    # behind, and what stands `k` bytes after the start of the run is at `pos + k`, because the
    # bytes of a field of variable size are added to `pos` as soon as it is read.

    def read_region(self, region: Region, after: int, *, fetched: bool = False) -> None:
        """Read a struct; at least `after` bytes follow it, and its first run may be fetched."""
        if not fetched:
            self.set_up(region)
        runs = region.runs()
        for index, run in enumerate(runs):
            remaining = after + sum(size_of(later) for later in runs[index + 1 :])
            following = runs[index + 1] if index + 1 < len(runs) else []
            fetched = self.read_run(run, following, remaining, fetched=fetched)

    def set_up(self, region: Region) -> None:
        for statement in region.setup:
            self.line(statement)

    def read_run(self, run: Run, following: Run, remaining: int, *, fetched: bool) -> bool:
        """Read a run; returns whether the next one was fetched along with it."""
        last = run[-1]
        ahead: Run = []
        if not fetched:
            if isinstance(last, Array) and last.element is not None:
                ahead = last.element.runs()[0]
            self.fetch_ahead(Rest(run, ahead, remaining), 0)
        for index, reading in enumerate(run):
            if not isinstance(reading, Value):
                rest = Rest(run[index + 1 :], ahead, remaining)
                at = size_of(run[: index + 1])
                if isinstance(reading, Array) and not rest.run:
                    return self.read_array(reading, at, following, rest)
                self.read_variable(reading, at, rest)
        if isinstance(last, Value):
            self.line(f"pos += {size_of(run)}")
        return False

    def fetch(self, run: Run, at: str, names: list[str]) -> None:
        """Fetch a run into variables with one call."""
        codes = codes_of(run)
        if codes == "B":
            self.line(f"{names[0]} = data[{at}]")
        else:
            comma = "," if len(names) == 1 else ""
            unpack = self.source.layout(codes, "unpack_from")
            self.line(f"{', '.join(names)}{comma} = {unpack}(data, {at})")

    def fetch_ahead(self, rest: "Rest", at: int) -> None:
        """Fetch a run, with the first run of the element that may follow it.

        If there is no such element, what stands there is fetched, and nobody looks at it.
        """
        run, ahead, remaining = rest
        names = [reading.variable for reading in run]
        if not ahead:
            self.fetch(run, position(at), names)
        elif size_of(ahead) <= remaining:
            self.fetch([*run, *ahead], position(at), names + local_names(ahead))
        else:
            with self.block(f"if {position(at + size_of([*run, *ahead]))} <= size:"):
                self.fetch([*run, *ahead], position(at), names + local_names(ahead))
            with self.block("else:"):
                self.fetch(run, position(at), names)

    def fetch_again(self, rest: "Rest", at: int) -> None:
        """Fetch the rest of a run, behind a field that was not empty."""
        if rest.run:
            self.fetch_ahead(rest, at)

    # Fields of variable size

    def read_variable(self, reading: Reading, at: int, rest: "Rest") -> None:
        match reading:
            case Sized() if rest.run:
                self.read_unlikely(reading, at, rest)
            case Sized():
                self.read_sized(reading, at)
            case Array():
                self.read_unlikely_array(reading, at, rest)
            case Optional():
                self.line(f"pos += {at}")
                with self.block(f"if {reading.variable} < 0:"):
                    self.line(f"{reading.target} = None")
                with self.block("else:"):
                    self.read_region(reading.struct, rest.remaining)
                    self.line(f"{reading.target} = {reading.struct.owner}")
            case Tags():
                self.read_tags(reading, at, rest)

    def read_sized(self, reading: Sized, at: int) -> None:
        """Read a string, bytes or batches at the end of a run."""
        length = reading.variable
        if self.flexible:
            self.widen(length, at)
        with self.block(f"if {length} <= 0:" if self.flexible else f"if {length} < 0:"):
            if reading.nullable:
                self.line(f"{reading.target} = None")
                self.line(f"pos += {at}")
            else:
                self.line(f"raise bad_length({field_name(reading.target)!r}, {length})")
        if reading.nullable:
            with self.block("else:"):
                self.slice_sized(reading, at)
        else:
            self.slice_sized(reading, at)

    def slice_sized(self, reading: Sized, at: int) -> None:
        self.line(f"start = pos + {at}")
        self.line(f"pos = start + {reading.variable}{' - 1' if self.flexible else ''}")
        self.line(f"{reading.target} = {self.cut(reading.kind, 'pos')}")

    def read_unlikely(self, reading: Sized, at: int, rest: "Rest") -> None:
        """Read a nullable string or bytes within a run."""
        length = reading.variable
        empty = "''" if reading.kind is Kind.STRING else "b''"
        with self.block(f"if {length} > {1 if self.flexible else 0}:"):
            if self.flexible:
                self.widen(length, at)
                self.line(f"{length} -= 1")
            self.line(f"start = pos + {at}")
            self.line(f"pos += {length}")
            self.line(f"{reading.target} = {self.cut(reading.kind, f'start + {length}')}")
            self.fetch_again(rest, at)
        with self.block("else:"):
            present = length if self.flexible else f"not {length}"
            self.line(f"{reading.target} = {empty} if {present} else None")

    def cut(self, kind: Kind, end: str) -> str:
        """The expression of a field's value, from `start` to `end`."""
        if kind is Kind.BATCHES:
            return f"view[start:{end}]"
        text = ".decode()" if kind is Kind.STRING else ""
        return f"data[start:{end}]{text if self.copies else '.tobytes()' + text}"

    def widen(self, length: str, at: int) -> None:
        """Read the rest of a varint of which only the first byte is in `length`."""
        with self.block(f"if {length} > 127:"):
            self.line(f"{length}, pos = widen_uvarint({length}, data, pos, {at})")

    # Arrays

    def read_unlikely_array(self, array: Array, at: int, rest: "Rest") -> None:
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

    def read_array(self, array: Array, at: int, following: Run, rest: "Rest") -> bool:
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
        readers = f"runs_of_{code}_{codes_of(following)}".replace("?", "_")
        self.source.namespace[readers] = run_readers(code, codes_of(following), int(self.flexible))
        series = f"{readers}[{count}](data, {position(at)})"
        if following:
            names = ", ".join(reading.variable for reading in following)
            self.line(f"*{array.target}, {names} = {series}")
        else:
            self.line(f"{array.target} = [*{series}]")
        size = size_of([Value("", code)])
        self.line(f"pos += {count} * {size} + {at - size if self.flexible else at}")

    def read_elements(self, array: Array, rest: "Rest") -> None:
        """Read what a count that stands at the end of a run announces."""
        if array.element is not None:
            self.read_structs(array, rest)
        elif array.field.element is Kind.STRING:
            self.read_strings(array)
        else:
            code = self.element_code(array)
            self.source.namespace[f"runs_of_{code}"] = run_readers(code, "", 0)
            self.line(f"{array.target} = [*runs_of_{code}[{array.variable}](data, pos)]")
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

    def read_structs(self, array: Array, rest: "Rest") -> None:
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

    def read_structs_ahead(self, items: str, array: Array, element: Region, rest: "Rest") -> None:
        """Read structs of which the first run of the first one is fetched already."""
        with self.block(f"if {array.variable}:"), self.block("while True:"):
            self.set_up(element)
            self.take_locals(rest.ahead)
            self.read_region(element, rest.remaining, fetched=True)
            self.line(f"{items}.append({element.owner})")
            self.line(f"{array.variable} -= 1")
            with self.block(f"if not {array.variable}:"):
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

    def take_locals(self, run: Run) -> None:
        """Store what was fetched before its owner existed."""
        for reading, name in zip(run, local_names(run), strict=True):
            if isinstance(reading, Value):
                self.line(f"{reading.variable} = {name}")

    # Tagged fields

    def read_tags(self, tags: Tags, at: int, rest: "Rest") -> None:
        count = tags.variable
        if not rest.run:
            self.line(f"pos += {at}")
            at = 0
        with self.block(f"if {count}:"):
            if tags.fields:
                if at:
                    self.line(f"pos += {at}")
                self.read_known_tags(tags)
                if at:
                    self.line(f"pos -= {at}")
            else:
                back = f" - {at}" if at else ""
                self.line(f"pos = skip_tagged_fields({count}, data, {position(at)}){back}")
            self.fetch_again(rest, at)

    def read_known_tags(self, tags: Tags) -> None:
        new_name = self.source.new_name
        count, tag, length, begin = tags.variable, new_name("tag"), new_name("n"), new_name("begin")
        self.widen(count, 0)
        with self.block(f"while {count}:"):
            self.line(f"{count} -= 1")
            self.line(f"{tag}, pos = read_uvarint(data, pos)")
            self.line(f"{length}, pos = read_uvarint(data, pos)")
            self.line(f"{begin} = pos")
            for field, region in tags.fields:
                with self.block(f"if {tag} == {field.tag}:"):
                    self.read_region(region, 0)
                    with self.block(f"if pos != {begin} + {length}:"):
                        self.line(f"raise bad_tag_size({field.name!r}, {length}, pos - {begin})")
            self.line(f"pos = {begin} + {length}")


class Rest(NamedTuple):
    """What remains of a run behind one of its readings.

    `ahead` is the first run of the elements that the last count of the run announces, and at
    least `remaining` bytes follow the run even if there are none.
    """

    run: Run
    ahead: Run
    remaining: int


def position(at: int) -> str:
    """The expression of a place within a run."""
    return f"pos + {at}" if at else "pos"


def local_names(run: Run) -> list[str]:
    """Names for a run that is fetched before the struct that it fills exists."""
    return [reading.variable.replace(".", "_") for reading in run]


def field_name(target: str) -> str:
    """The field of a target such as `item.name`."""
    return target.rpartition(".")[2]


@cache
def run_readers(code: str, suffix: str, bias: int) -> primitives.RunReaders:
    """The readers of runs of one type with what follows them, shared by all decoders."""
    return primitives.RunReaders(code, suffix, bias)
