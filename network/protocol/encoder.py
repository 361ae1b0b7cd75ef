"""Compiles the encoder of one message in one version to Python source.

The mirror image of `decoder`: one flat function in which neighbouring fixed-width values, the
length that follows them included, become one `pack`. Record batches are not copied: they stay
parts of their own, whatever object they are.
"""

from collections.abc import Callable
from typing import Any

from network.protocol import primitives
from network.protocol.plan import FIXED, has_batches
from network.protocol.schema import ZERO_UUID, Field, Kind, Message, Struct, default_source
from network.protocol.source import Source

Encode = Callable[[Any], list[Any]]

# Bytes up to this size are copied between their neighbours: another part would cost more.
INLINE_LIMIT = 1024


def compile_encoder(message: type[Message], version: int) -> Encode:
    """Build `encode(message)`, which returns the parts to be sent one after the other.

    There is always a first part and it is always bytes, so that a header can be put before it.
    """
    return EncoderCompiler(message, version).compile()


class EncoderCompiler:
    """Walks a message's fields and writes the statements that put them out."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = version in message.FLEXIBLE
        self.source = Source(
            ZERO_UUID=ZERO_UUID,
            join_parts=primitives.join_parts,
            write_uvarint=primitives.write_uvarint,
            sixteen_bytes=primitives.sixteen_bytes,
            absent_field=primitives.absent_field,
            in_memory=(bytes, bytearray, memoryview),
        )
        # Fixed-width values not packed yet as (expression, code) pairs, chunks not put out yet,
        # and the name of the list that takes them.
        self.pending: list[tuple[str, str]] = []
        self.chunks: list[str] = []
        self.out = "out"

    def compile(self) -> Encode:
        source = self.source
        batches = has_batches(self.message, self.version)
        with source.block("def encode(message):"):
            source.line("out = []")
            if batches:
                source.line("cuts = []")
            self.write_struct("message", self.message)
            self.put_out()
            source.line("return join_parts(out, cuts)" if batches else 'return [b"".join(out)]')
        return source.compile("encode", f"{self.message.__name__} v{self.version} encoder")

    # Output

    def put(self, expression: str, code: str) -> None:
        """Queue a fixed-width value, to be packed together with its neighbours."""
        self.pending.append((expression, code))

    def put_chunk(self, expression: str) -> None:
        """Queue bytes that follow what is queued already."""
        self.flush()
        self.chunks.append(expression)

    def flush(self) -> None:
        """Pack the queued values into one chunk."""
        if self.pending:
            self.chunks.append(self.packed(self.pending))
            self.pending = []

    def packed(self, values: list[tuple[str, str]]) -> str:
        codes = "".join(code for _, code in values)
        if codes.strip("x") == "":
            return repr(bytes(len(codes)))
        arguments = ", ".join(expression for expression, code in values if code != "x")
        return f"{self.source.layout(codes, 'pack')}({arguments})"

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

    def put_length(self, length: str, code: str) -> None:
        """Put a length or count; in flexible versions `length` is already the length plus one."""
        if not self.flexible:
            self.put(length, code)
            return
        wide = f"write_uvarint({length})"
        if self.pending:
            wide = f"{self.packed(self.pending)} + {wide}"
        self.put(length, "B")
        narrow = self.packed(self.pending)
        self.pending = []
        self.chunks.append(f"{narrow} if {length} < 128 else {wide}")

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
            with source.block(f"if not ({inline}):"):
                source.line(f"cuts.append(len({self.out}))")
            source.line(f"{self.out}.append({records})")

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
        source.line(f"{items} = {value}")
        more = " + 1" if self.flexible else ""
        if nullable:
            null = 0 if self.flexible else -1
            source.line(f"{count} = {null} if {items} is None else len({items}){more}")
        else:
            source.line(f"{count} = len({items}){more}")
        self.put_length(count, "i")
        if field.element in FIXED:
            code = field.element.value
            source.namespace[f"runs_of_{code}"] = run_writers(code)
            run = f"runs_of_{code}[len({items})](*{items})"
            self.put_chunk(f'{run} if {items} else b""' if nullable else run)
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


_RUN_WRITERS: dict[str, primitives.RunWriters] = {}


def run_writers(code: str) -> primitives.RunWriters:
    """The writers of runs of one type, shared by all encoders."""
    return _RUN_WRITERS.setdefault(code, primitives.RunWriters(code))
