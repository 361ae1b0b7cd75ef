"""Compiles the encoder of one message in one version to Python source.

The mirror image of `decoder`: one flat function in which neighbouring fixed-width values, the
length that follows them included, become one `pack`. Record batches are not copied: they stay
parts of their own, whatever object they are.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from network.protocol import primitives
from network.protocol.compiler.plan import FIXED, has_batches
from network.protocol.compiler.source import Source
from network.protocol.schema import ZERO_UUID, Field, Kind, Message, Struct, default_source

Encode = Callable[[Any], list[Any]]

# Bytes up to this size are copied between their neighbours: another part would cost more.
INLINE_LIMIT = 1024


def compile_encoder(message: type[Message], version: int) -> Encode:
    """Build `encode(message)`, which returns the parts to be sent one after the other.

    There is always a first part and it is always bytes, so that a header can be put before it.
    """
    return EncoderCompiler(message, version).compile()


class Piece(NamedTuple):
    """What is to be packed: a value, a length or count, or a series of values of one type.

    A `varint` is a length that takes one byte if it is below 128; of a series, `expression` is
    the starred list and `series` the variable that has its length.
    """

    expression: str
    code: str
    varint: bool = False
    series: str = ""


class EncoderCompiler:
    """Walks a message's fields and writes the statements that put them out."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = version in message.FLEXIBLE
        self.source = Source(
            ZERO_UUID=ZERO_UUID,
            one_byte=primitives.ONE_BYTE,
            write_uvarint=primitives.write_uvarint,
            sixteen_bytes=primitives.sixteen_bytes,
            absent_field=primitives.absent_field,
            in_memory=(bytes, bytearray, memoryview),
        )
        # Values not packed yet, chunks not put out yet, and the list that takes them.
        self.pending: list[Piece] = []
        self.chunks: list[str] = []
        self.out = "out"

    def compile(self) -> Encode:
        source = self.source
        batches = has_batches(self.message, self.version)
        with source.block("def encode(message):"):
            source.line("out = []")
            if batches:
                source.line("parts = []")
            self.write_struct("message", self.message)
            self.put_out()
            if batches:
                with source.block("if parts:"):
                    with source.block("if out:"):
                        source.line('parts.append(b"".join(out))')
                    source.line("return parts")
            source.line('return [b"".join(out)]')
        return source.compile("encode", f"{self.message.__name__} v{self.version} encoder")

    # Output

    def put(self, expression: str, code: str) -> None:
        """Queue a fixed-width value, to be packed together with its neighbours."""
        self.pending.append(Piece(expression, code))

    def put_length(self, length: str, code: str) -> None:
        """Queue a length or count; in flexible versions `length` is one more than it."""
        self.pending.append(Piece(length, "B" if self.flexible else code, varint=self.flexible))

    def put_chunk(self, expression: str) -> None:
        """Queue bytes that follow what is queued already."""
        self.flush()
        self.chunks.append(expression)

    def flush(self) -> None:
        """Pack the queued values into one chunk."""
        pieces, self.pending = self.pending, []
        varints = [piece.expression for piece in pieces if piece.varint]
        if len(pieces) == len(varints) == 1:
            length = varints[0]
            self.chunks.append(f"one_byte[{length}] if {length} < 128 else write_uvarint({length})")
        elif varints:
            narrow = " and ".join(f"{length} < 128" for length in varints)
            self.chunks.append(f"{self.packed(pieces)} if {narrow} else {self.widened(pieces)}")
        elif pieces:
            self.chunks.append(self.packed(pieces))

    def packed(self, pieces: list["Piece"]) -> str:
        """The expression that packs pieces with one call, taking varints for single bytes."""
        lengths = [piece.series for piece in pieces if piece.series]
        codes = [piece.code for piece in pieces]
        if set(codes) == {"x"}:
            return repr(bytes(len(codes)))
        if lengths:
            shapes = [f"*{piece.code}" if piece.series else piece.code for piece in pieces]
            pack = f"packs_{'_'.join(shapes)}".replace("*", "n").replace("?", "B_")
            if pack not in self.source.namespace:
                self.source.namespace[pack] = primitives.SeriesPackers(shapes, int(self.flexible))
            pack = f"{pack}[{', '.join(lengths)}]"
        else:
            pack = self.source.layout("".join(codes), "pack")
        arguments = (piece.expression for piece in pieces if piece.code != "x")
        return f"{pack}({', '.join(arguments)})"

    def widened(self, pieces: list["Piece"]) -> str:
        """The expression that joins pieces of which a varint has more than one byte."""
        parts: list[str] = []
        between: list[Piece] = []
        for piece in pieces:
            if piece.varint:
                if between:
                    parts.append(self.packed(between))
                    between = []
                parts.append(f"write_uvarint({piece.expression})")
            else:
                between.append(piece)
        if between:
            parts.append(self.packed(between))
        return " + ".join(parts)

    def put_out(self) -> None:
        """Hand the queued chunks to the list of output, as every branch and loop needs it."""
        self.flush()
        if len(self.chunks) == 1:
            self.source.line(f"{self.out}.append({self.chunks[0]})")
        elif self.chunks:
            self.source.line(f"{self.out} += ({', '.join(self.chunks)})")
        self.chunks = []

    # Structs and their fields

    def write_struct(self, owner: str, struct: type[Struct]) -> None:
        tagged: list[Field] = []
        for field in struct.FIELDS:
            if self.version not in field.versions:
                if not field.ignorable:
                    self.refuse_absent(owner, field)
            elif field.tag is not None:
                tagged.append(field)
            else:
                self.write_field(f"{owner}.{field.name}", field)
        if tagged:
            self.write_tags(owner, tagged)
        elif self.flexible:
            self.put("", "x")

    def refuse_absent(self, owner: str, field: Field) -> None:
        value = f"{owner}.{field.name}"
        if field.struct is not None:
            self.source.namespace[field.struct.__name__] = field.struct
        with self.source.block(f"if {differs_from_default(value, field)}:"):
            self.source.line(f"raise absent_field({field.name!r}, {self.version}, {value})")

    def write_field(self, value: str, field: Field) -> None:
        nullable = self.version in field.nullable
        if field.kind is Kind.UUID:
            self.put(f"sixteen_bytes({value})", field.kind.value)
        elif field.kind in FIXED:
            self.put(value, field.kind.value)
        elif field.kind is Kind.ARRAY:
            self.write_array(value, field, nullable)
        elif field.kind is Kind.BATCHES:
            self.write_batches(value, nullable)
        elif field.kind is Kind.STRUCT and field.struct is not None:
            if nullable:
                self.write_nullable_struct(value, field.struct)
            else:
                owner = self.source.new_name("struct")
                self.source.line(f"{owner} = {value}")
                self.write_struct(owner, field.struct)
        else:
            self.write_sized(value, field.kind, nullable)

    def write_sized(self, value: str, kind: Kind, nullable: bool) -> None:
        """Put a string or bytes."""
        source = self.source
        data, length = source.new_name("data"), source.new_name("n")
        encoded = "{}.encode()" if kind is Kind.STRING else "{}"
        code = "h" if kind is Kind.STRING else "i"
        more = " + 1" if self.flexible else ""
        if nullable:
            source.line(f"{data} = {value}")
            with source.block(f"if {data} is None:"):
                source.line(f'{data} = b""')
                source.line(f"{length} = {0 if self.flexible else -1}")
            with source.block("else:"):
                if kind is Kind.STRING:
                    source.line(f"{data} = {data}.encode()")
                source.line(f"{length} = len({data}){more}")
        else:
            source.line(f"{data} = {encoded.format(value)}")
            source.line(f"{length} = len({data}){more}")
        self.put_length(length, code)
        self.put_chunk(data)

    def write_batches(self, value: str, nullable: bool) -> None:
        source = self.source
        records, length = source.new_name("records"), source.new_name("n")
        source.line(f"{records} = {value}")
        more = " + 1" if self.flexible else ""
        if nullable:
            null = 0 if self.flexible else -1
            source.line(f"{length} = {null} if {records} is None else len({records}){more}")
        else:
            source.line(f"{length} = len({records}){more}")
        self.put_length(length, "i")
        self.put_out()
        with source.block(f"if {length} > 0:"):
            inline = f"{length} <= {INLINE_LIMIT} and isinstance({records}, in_memory)"
            with source.block(f"if {inline}:"):
                source.line(f"{self.out}.append({records})")
            with source.block("else:"):
                source.line(f'parts += (b"".join({self.out}), {records})')
                source.line(f"{self.out} = []")

    def write_nullable_struct(self, value: str, struct: type[Struct]) -> None:
        owner = self.source.new_name("struct")
        self.put_out()
        self.source.line(f"{owner} = {value}")
        with self.source.block(f"if {owner} is None:"):
            self.source.line(f'{self.out}.append(b"\\xff")')
        with self.source.block("else:"):
            self.put("1", "b")
            self.write_struct(owner, struct)
            self.put_out()

    # Arrays

    def write_array(self, value: str, field: Field, nullable: bool) -> None:
        source = self.source
        items, count = source.new_name("items"), source.new_name("n")
        length = source.new_name("n") if nullable and field.element in FIXED else count
        source.line(f"{items} = {value}")
        more = " + 1" if self.flexible else ""
        if nullable:
            null = 0 if self.flexible else -1
            source.line(f"{count} = {null} if {items} is None else len({items}){more}")
        else:
            source.line(f"{count} = len({items}){more}")
        self.put_length(count, "i")
        if field.element in FIXED:
            if nullable:
                # A null list is written like an empty one, after a count that tells it apart.
                source.line(f"{items} = {items} or ()")
                source.line(f"{length} = len({items}){more}")
            self.pending.append(Piece(f"*{items}", field.element.value, series=length))
            return
        self.put_out()
        if nullable:
            with source.block(f"if {items}:"):
                self.write_elements(items, field)
        else:
            self.write_elements(items, field)

    def write_elements(self, items: str, field: Field) -> None:
        item = self.source.new_name("item")
        with self.source.block(f"for {item} in {items}:"):
            if field.struct is not None:
                self.write_struct(item, field.struct)
            else:
                assert field.element is not None
                self.write_sized(item, field.element, nullable=False)
            self.put_out()

    # Tagged fields

    def write_tags(self, owner: str, tagged: list[Field]) -> None:
        source = self.source
        outer = self.out
        self.put_out()
        tags = source.new_name("tags")
        source.line(f"{tags} = []")
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            value = f"{owner}.{field.name}"
            with source.block(f"if {differs_from_default(value, field)}:"):
                self.out = source.new_name("tag")
                source.line(f"{self.out} = []")
                self.write_field(value, field)
                self.put_out()
                source.line(f'{self.out} = b"".join({self.out})')
                tag = f"write_uvarint({field.tag})"
                source.line(f"{tags} += ({tag}, write_uvarint(len({self.out})), {self.out})")
        self.out = outer
        source.line(f"{outer}.append(write_uvarint(len({tags}) // 3))")
        source.line(f"{outer} += {tags}")


def differs_from_default(value: str, field: Field) -> str:
    """The condition under which a field holds something that its absence would lose."""
    default = default_source(field)
    if default == "None":
        return f"{value} is not None"
    if default in ("''", "b''", "[]", "0", "False"):
        return value
    return f"{value} != {default}"
