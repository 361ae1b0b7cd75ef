"""Messages filled at random from their declarations, and the list of all that there are.

Shared by the tests of this folder; a seed gives the same messages on every run.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, TypeVar

from network.protocol import ApiKey, ErrorCode, request_class, response_class
from network.protocol.schema import ApiMessage, Field, Kind, Struct

S = TypeVar("S", bound=Struct)

INTEGER_BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
LENGTHS = (0, 1, 2, 3, 20, 126, 127, 128, 300)
ERROR_CODES = [code.value for code in ErrorCode]


def every_message() -> Iterator[tuple[type[ApiMessage], int]]:
    """All requests and responses, each in all of its versions."""
    for api in ApiKey:
        for message in (request_class(api), response_class(api)):
            for version in range(message.VERSIONS.lowest, message.VERSIONS.highest + 1):
                yield message, version


def title(message: type[ApiMessage], version: int) -> str:
    return f"{message.__name__}-v{version}"


class Sampler:
    """Makes messages; a `tame` one keeps to values that every codec can represent.

    Some codecs turn milliseconds into times and error codes into an enum of their own, and so
    cannot carry just any integer.
    """

    def __init__(self, seed: int, *, tame: bool = False, longest_array: int = 3) -> None:
        self.random = Random(seed)
        self.tame = tame
        self.longest_array = longest_array

    def message(self, struct: type[S], version: int) -> S:
        made = struct()
        for field in struct.FIELDS:
            if version in field.versions:
                setattr(made, field.name, self.field(field, version))
        return made

    def field(self, field: Field, version: int) -> Any:
        if version in field.nullable and self.random.random() < 0.3:
            return None
        if field.kind is Kind.STRUCT and field.tag is not None:
            made = self.value(field.kind, field, version)
            # To others, a tagged struct of defaults only is one that is not there.
            return None if made == type(made)() else made
        if field.kind is not Kind.ARRAY:
            return self.value(field.kind, field, version)
        count = self.random.randint(0, self.longest_array)
        assert field.element is not None
        return [self.value(field.element, field, version) for _ in range(count)]

    def value(self, kind: Kind, field: Field, version: int) -> Any:
        if kind in INTEGER_BITS:
            return self.integer(kind, field)
        match kind:
            case Kind.BOOLEAN:
                return self.random.random() < 0.5
            case Kind.FLOAT64:
                return self.random.uniform(-1e9, 1e9)
            case Kind.UUID:
                return self.random.randbytes(16)
            case Kind.STRING:
                return "".join(self.random.choices("abcxyz-_.äß漢", k=self.length()))
            case Kind.STRUCT:
                assert field.struct is not None
                return self.message(field.struct, version)
            case _:
                return self.random.randbytes(self.length())

    def integer(self, kind: Kind, field: Field) -> int:
        if self.tame and "error_code" in field.name:
            return self.random.choice(ERROR_CODES)
        bits = INTEGER_BITS[kind] - 1
        if self.tame and kind is Kind.INT64:
            return self.random.randint(0, 2**40)
        return self.random.choice(
            (0, -1, 1, 2**bits - 1, -(2**bits), self.random.getrandbits(bits))
        )

    def length(self) -> int:
        return self.random.choice(LENGTHS)
