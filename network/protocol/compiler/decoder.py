"""Compiles the decoder of one message in one version to Python source.

The source is one flat function: nested structs and arrays become nested loops, and each run of
a `plan` becomes one `unpack_from`. Where a run ends with the count of an array of structs, the
start of the first element is fetched along with it.

Lengths are not compared with the end of the frame one by one. A slice past the end is short
and costs nothing, the position never goes back, and whoever reads behind the end raises or is
caught by the check at the end. Only counts are checked where they stand, since they allocate.
"""

from collections.abc import Callable
from typing import Any

from network.protocol import primitives
from network.protocol.compiler.arrays import ArrayCompiler
from network.protocol.compiler.plan import (
    Array,
    NullableStruct,
    Planner,
    Reading,
    Region,
    Run,
    Sized,
    Tags,
    Value,
    has_batches,
    size_of,
)
from network.protocol.compiler.runs import Rest, field_name, position
from network.protocol.compiler.source import Source
from network.protocol.schema import ZERO_UUID, Kind, Message, blank_class

Decode = Callable[[memoryview, int], Any]

# Up to this size a copy of the frame as bytes is cheaper than reading through a memoryview.
COPY_LIMIT = 4096


def compile_decoder(message: type[Message], version: int) -> Decode:
    """Build `decode(view, pos)`, which reads one message that ends where the view ends."""
    if not has_batches(message, version):
        return DecoderCompiler(message, version).compile()
    decode_large = DecoderCompiler(message, version, copies=False).compile()
    return DecoderCompiler(message, version).compile(decode_large)


class DecoderCompiler(ArrayCompiler):
    """Writes the statements that read a message, from a copy of its frame or from the frame."""

    def __init__(self, message: type[Message], version: int, *, copies: bool = True) -> None:
        source = Source(
            read_uvarint=primitives.read_uvarint,
            widen_uvarint=primitives.widen_uvarint,
            skip_tagged_fields=primitives.skip_tagged_fields,
            bad_length=primitives.bad_length,
            bad_count=primitives.bad_count,
            bad_tag_size=primitives.bad_tag_size,
            bad_end=primitives.bad_end,
        )
        flexible = version in message.FLEXIBLE
        super().__init__(source, version, flexible=flexible, classes={"ZERO_UUID": ZERO_UUID})
        self.message = message
        self.copies = copies

    def compile(self, decode_large: Decode | None = None) -> Decode:
        """Build the function; `decode_large` takes over what is too large to be copied."""
        planner = Planner(self.version, self.flexible, self.source.new_name)
        region = planner.region("message", self.message)
        for struct in planner.structs:
            self.classes[struct.__name__] = struct
            self.classes[f"new_{struct.__name__}"] = blank_class(struct)
        self.source.namespace.update(self.classes)
        with self.block("def decode(view, pos):"):
            self.line("size = len(view)")
            if decode_large is not None:
                self.source.namespace["decode_large"] = decode_large
                with self.block(f"if size > {COPY_LIMIT}:"):
                    self.line("return decode_large(view, pos)")
            self.line("data = view.tobytes()" if self.copies else "data = view")
            self.read_region(region, after=0)
            # Behind the message there may be more: librdkafka ends some requests with a byte too
            # many, and Kafka 2.5 takes no notice.
            with self.block("if pos > size:"):
                self.line("raise bad_end(pos, size)")
            self.line("return message")
        return self.source.compile("decode", f"{self.message.__name__} v{self.version} decoder")

    # Runs

    def read_region(self, region: Region, after: int, *, fetched: bool = False) -> None:
        """Read a struct; at least `after` bytes follow it, and its first run may be fetched."""
        if not fetched:
            self.set_up(region)
        runs = region.runs()
        for index, run in enumerate(runs):
            remaining = after + sum(size_of(later) for later in runs[index + 1 :])
            following = runs[index + 1] if index + 1 < len(runs) else []
            fetched = self.read_run(run, following, remaining, fetched=fetched)

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

    # Fields of variable size

    def read_variable(self, reading: Reading, at: int, rest: Rest) -> None:
        match reading:
            case Sized() if rest.run:
                self.read_unlikely(reading, at, rest)
            case Sized():
                self.read_sized(reading, at)
            case Array():
                self.read_unlikely_array(reading, at, rest)
            case NullableStruct():
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

    def read_unlikely(self, reading: Sized, at: int, rest: Rest) -> None:
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

    # Tagged fields

    def read_tags(self, tags: Tags, at: int, rest: Rest) -> None:
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
