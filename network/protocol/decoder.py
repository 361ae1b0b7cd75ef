"""Compiles the decoder of one message in one version to Python source.

The source is one flat function: nested structs and arrays become nested loops, neighbouring
fixed-width values (and the length that follows them) become one `unpack_from`, and no value is
touched by a call that the version does not need.

Lengths are not compared with the end of the frame one by one. A slice past the end is short
and costs nothing, the position never goes back, and whoever reads behind the end raises or is
caught by the check at the end. Only counts are checked where they stand, since they allocate.
"""

from collections.abc import Callable
from struct import calcsize
from typing import Any

from network.protocol import primitives
from network.protocol.schema import ZERO_UUID, Field, Kind, Message, Struct, default_source
from network.protocol.source import Source

Decode = Callable[[memoryview, int], Any]

FIXED = frozenset(
    {Kind.BOOLEAN, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT64, Kind.UUID}
)
# Up to this size a copy of the frame as bytes is cheaper than reading through a memoryview.
COPY_LIMIT = 4096


def compile_decoder(message: type[Message], version: int) -> Decode:
    """Build `decode(view, pos)`, which reads one message that ends where the view ends."""
    return DecoderCompiler(message, version).compile()


def minimal_size(struct: type[Struct], version: int, flexible: bool) -> int:
    """The fewest bytes in which a struct can be encoded."""
    size = sum(
        _minimal_field_size(field, version, flexible)
        for field in struct.FIELDS
        if version in field.versions and field.tag is None
    )
    return size + flexible


def _minimal_field_size(field: Field, version: int, flexible: bool) -> int:
    if field.kind in FIXED:
        return calcsize(f">{field.kind.value}")
    if field.kind is Kind.STRUCT and field.struct is not None:
        nullable = version in field.nullable
        return 1 if nullable else minimal_size(field.struct, version, flexible)
    if flexible:
        return 1
    return 2 if field.kind is Kind.STRING else 4


def has_batches(struct: type[Struct], version: int) -> bool:
    """Whether a version of a struct holds record batches anywhere."""
    return any(
        field.kind is Kind.BATCHES
        or (field.struct is not None and has_batches(field.struct, version))
        for field in struct.FIELDS
        if version in field.versions
    )


class DecoderCompiler:
    """Walks a message's fields and writes the statements that read them."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = version in message.FLEXIBLE
        self.has_batches = has_batches(message, version)
        self.source = Source(
            new=object.__new__,
            ZERO_UUID=ZERO_UUID,
            read_uvarint=primitives.read_uvarint,
            widen_uvarint=primitives.widen_uvarint,
            skip_tagged_fields=primitives.skip_tagged_fields,
            bad_length=primitives.bad_length,
            bad_count=primitives.bad_count,
            bad_tag_size=primitives.bad_tag_size,
            bad_end=primitives.bad_end,
        )
        # Fixed-width values not read yet, as (target, code) pairs,
        # and how far reading has got ahead of the variable `pos`.
        self.pending: list[tuple[str, str]] = []
        self.ahead = 0

    def compile(self) -> Decode:
        source = self.source
        with source.block("def decode(view, pos):"):
            source.line("size = len(view)")
            if self.has_batches:
                source.line(f"data = view.tobytes() if size <= {COPY_LIMIT} else view")
            else:
                source.line("data = view.tobytes()")
            self.read_struct("message", "message", self.message)
            self.catch_up()
            with source.block("if pos != size:"):
                source.line("raise bad_end(pos, size)")
            source.line("return message")
        return source.compile("decode", f"{self.message.__name__} v{self.version} decoder")

    # Positions

    def want(self, target: str, code: str) -> None:
        """Queue a fixed-width value, to be read together with its neighbours."""
        self.pending.append((target, code))

    def flush(self) -> None:
        """Read what is queued with one call."""
        if not self.pending:
            return
        codes = "".join(code for _, code in self.pending)
        targets = ", ".join(target for target, _ in self.pending)
        if codes == "B":
            self.source.line(f"{targets} = data[{self.here()}]")
        else:
            unpack = self.source.layout(codes, "unpack_from")
            comma = "," if len(self.pending) == 1 else ""
            self.source.line(f"{targets}{comma} = {unpack}(data, {self.here()})")
        self.ahead += calcsize(f">{codes}")
        self.pending.clear()

    def here(self) -> str:
        """The expression of the present position."""
        return f"pos + {self.ahead}" if self.ahead else "pos"

    def catch_up(self) -> None:
        """Make `pos` the present position, as every branch and loop needs it."""
        self.flush()
        if self.ahead:
            self.source.line(f"pos += {self.ahead}")
            self.ahead = 0

    # Structs and their fields

    def read_struct(self, owner: str, target: str, struct: type[Struct]) -> None:
        """Read a struct into `target`; `owner` is the local name for its further fields."""
        source = self.source
        source.namespace[struct.__name__] = struct
        targets = owner if owner == target else f"{target} = {owner}"
        source.line(f"{targets} = new({struct.__name__})")
        tagged: list[Field] = []
        for field in struct.FIELDS:
            if version_lacks(field, self.version) or field.tag is not None:
                if field.struct is not None:
                    source.namespace[field.struct.__name__] = field.struct
                source.line(f"{owner}.{field.name} = {default_source(field)}")
            if version_lacks(field, self.version):
                continue
            if field.tag is not None:
                tagged.append(field)
            else:
                self.read_field(f"{owner}.{field.name}", field)
        if self.flexible:
            self.read_tags(owner, tagged)

    def read_field(self, target: str, field: Field) -> None:
        nullable = self.version in field.nullable
        if field.kind in FIXED:
            self.want(target, field.kind.value)
        elif field.kind is Kind.ARRAY:
            self.read_array(target, field, nullable)
        elif field.kind is Kind.STRUCT and field.struct is not None:
            if nullable:
                self.read_nullable_struct(target, field.struct)
            else:
                self.read_struct(self.source.new_name("struct"), target, field.struct)
        else:
            self.read_sized(target, field.kind, nullable)

    def read_length(self, code: str) -> str:
        """Read a length or count of either form; returns the name of the variable that has it.

        In flexible versions it is a varint of the length plus one, of which one byte is read
        with the values before it and the rest only where there is more.
        """
        length = self.source.new_name("n")
        self.want(length, "B" if self.flexible else code)
        self.flush()
        if self.flexible:
            with self.source.block(f"if {length} > 127:"):
                self.source.line(
                    f"{length}, pos = widen_uvarint({length}, data, pos, {self.ahead})"
                )
        return length

    def read_sized(self, target: str, kind: Kind, nullable: bool) -> None:
        """Read a string, bytes or record batches."""
        source = self.source
        length = self.read_length("h" if kind is Kind.STRING else "i")
        present = f"if {length}:" if self.flexible else f"if {length} >= 0:"
        name = target.partition(".")[2] or target
        before = self.ahead
        with source.block(present):
            source.line(f"start = {self.here()}")
            source.line(f"pos = start + {length}{' - 1' if self.flexible else ''}")
            source.line(f"{target} = {self.slice_of(kind)}")
        with source.block("else:"):
            if nullable:
                source.line(f"{target} = None")
                if before:
                    source.line(f"pos += {before}")
            else:
                source.line(
                    f"raise bad_length({name!r}, {length}{' - 1' if self.flexible else ''})"
                )
        self.ahead = 0

    def slice_of(self, kind: Kind) -> str:
        if kind is Kind.BATCHES:
            return "view[start:pos]"
        if kind is Kind.STRING:
            return (
                'str(data[start:pos], "utf-8")' if self.has_batches else "data[start:pos].decode()"
            )
        return "bytes(data[start:pos])" if self.has_batches else "data[start:pos]"

    def read_nullable_struct(self, target: str, struct: type[Struct]) -> None:
        marker = self.source.new_name("marker")
        self.want(marker, "b")
        self.catch_up()
        with self.source.block(f"if {marker} < 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self.read_struct(self.source.new_name("struct"), target, struct)
            self.catch_up()

    # Arrays

    def read_array(self, target: str, field: Field, nullable: bool) -> None:
        source = self.source
        count = self.read_length("i")
        self.catch_up()
        if self.flexible:
            source.line(f"{count} -= 1")
        name = target.partition(".")[2]
        if nullable:
            with source.block(f"if {count} < 0:"):
                source.line(f"{target} = None")
            with source.block("else:"):
                self.check_count(name, count, field, negative=False)
                self.read_elements(target, count, field)
        else:
            self.check_count(name, count, field, negative=True)
            self.read_elements(target, count, field)

    def check_count(self, name: str, count: str, field: Field, *, negative: bool) -> None:
        least = self.element_size(field)
        needed = count if least == 1 else f"{count} * {least}"
        condition = f"{needed} > size - pos" + (f" or {count} < 0" if negative else "")
        with self.source.block(f"if {condition}:"):
            self.source.line(f"raise bad_count({name!r}, {count}, size - pos)")

    def element_size(self, field: Field) -> int:
        """The fewest bytes of an element; at least one, or a count could ask for any memory."""
        if field.struct is not None:
            return max(1, minimal_size(field.struct, self.version, self.flexible))
        assert field.element is not None
        return _minimal_field_size(Field(field.element, "0+"), self.version, self.flexible)

    def read_elements(self, target: str, count: str, field: Field) -> None:
        source = self.source
        if field.element in FIXED:
            code = field.element.value
            source.namespace[f"runs_of_{code}"] = run_readers(code)
            source.line(f"{target} = [*runs_of_{code}[{count}](data, pos)]")
            source.line(f"pos += {count} * {calcsize('>' + code)}")
            return
        items = source.new_name("items")
        source.line(f"{target} = {items} = []")
        with source.block(f"for _ in range({count}):"):
            if field.struct is not None:
                item = source.new_name("item")
                self.read_struct(item, item, field.struct)
            else:
                item = source.new_name("item")
                assert field.element is not None
                self.read_sized(item, field.element, nullable=False)
            source.line(f"{items}.append({item})")
            self.catch_up()

    # Tagged fields

    def read_tags(self, owner: str, tagged: list[Field]) -> None:
        source = self.source
        count = source.new_name("tags")
        self.want(count, "B")
        self.catch_up()
        if not tagged:
            with source.block(f"if {count}:"):
                source.line(f"pos = skip_tagged_fields({count}, data, pos)")
            return
        with source.block(f"if {count}:"):
            with source.block(f"if {count} > 127:"):
                source.line(f"{count}, pos = widen_uvarint({count}, data, pos)")
            with source.block(f"for _ in range({count}):"):
                tag, length, begin = (source.new_name(n) for n in ("tag", "length", "begin"))
                source.line(f"{tag}, pos = read_uvarint(data, pos)")
                source.line(f"{length}, pos = read_uvarint(data, pos)")
                source.line(f"{begin} = pos")
                for field in tagged:
                    with source.block(f"if {tag} == {field.tag}:"):
                        self.read_field(f"{owner}.{field.name}", field)
                        self.catch_up()
                        with source.block(f"if pos != {begin} + {length}:"):
                            source.line(
                                f"raise bad_tag_size({field.name!r}, {length}, pos - {begin})"
                            )
                source.line(f"pos = {begin} + {length}")


def version_lacks(field: Field, version: int) -> bool:
    """Whether a version does not carry a field."""
    return version not in field.versions


_RUN_READERS: dict[str, primitives.RunReaders] = {}


def run_readers(code: str) -> primitives.RunReaders:
    """The readers of runs of one type, shared by all decoders."""
    return _RUN_READERS.setdefault(code, primitives.RunReaders(code))
