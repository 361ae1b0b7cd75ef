"""Hypothesis strategies for messages, derived from their declarations."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from network.protocol.schema import Field, Kind, Struct


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


SIMPLE: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INT8: integers(8),
    Kind.INT16: integers(16),
    Kind.INT32: integers(32),
    Kind.INT64: integers(64),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.UUID: st.binary(min_size=16, max_size=16),
    Kind.STRING: st.text(max_size=200),
    Kind.BINARY: st.binary(max_size=200),
    Kind.BATCHES: st.binary(max_size=2_000),
}


@cache
def messages(struct: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Any message of a version, with its other fields at their defaults."""
    fields = [field for field in struct.FIELDS if version in field.versions]
    return st.builds(struct, **{field.name: values(field, version) for field in fields})


def values(field: Field, version: int) -> st.SearchStrategy[Any]:
    kind = field.element if field.kind is Kind.ARRAY else field.kind
    assert kind is not None
    one = SIMPLE[kind] if field.struct is None else messages(field.struct, version)
    made = st.lists(one, max_size=4) if field.kind is Kind.ARRAY else one
    return st.none() | made if version in field.nullable else made
