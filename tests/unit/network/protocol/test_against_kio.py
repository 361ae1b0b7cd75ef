"""Our bytes and declarations against those of kio, which generates its own from Kafka's.

kio decodes what ours encoded and must see the same values under the same names; what it then
encodes itself must be the same bytes, and decode to the message that was sent.
"""

import datetime
import io
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from network.protocol.schema import ApiMessage, Kind, Request, Struct
from tests.unit.network.protocol.frames import body_position, decode_frame, encode_frame
from tests.unit.network.protocol.samples import Sampler, every_message, title

SAMPLES = 8
EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)


def covered() -> Iterator[tuple[type[ApiMessage], int]]:
    for message, version in every_message():
        versions = schema_name_map.get(api_key_map.get(message.API_KEY, ""), {})
        side = EntityType.request if issubclass(message, Request) else EntityType.response
        if side in versions.get(version, {}):
            yield message, version


COVERED = list(covered())
CASES = [pytest.param(*case, id=title(*case)) for case in COVERED]


def their_class(message: type[ApiMessage], version: int) -> Any:
    load = load_request_schema if issubclass(message, Request) else load_response_schema
    return load(message.API_KEY, version)


def in_our_terms(value: Any) -> Any:
    """Times in milliseconds, uuids as bytes, tuples as lists."""
    match value:
        case datetime.timedelta():
            return value // MILLISECOND
        case datetime.datetime():
            return (value - EPOCH) // MILLISECOND
        case UUID():
            return value.bytes
        case _:
            return value


def their_value(owner: Any, name: str) -> Any:
    """What they hold for a field; what is a time to them has lost its unit."""
    return getattr(owner, name if hasattr(owner, name) else name.removesuffix("_ms"))


def differences(ours: Any, theirs: Any, version: int, path: str) -> Iterator[str]:
    """Where a value of ours is not what they decoded."""
    theirs = in_our_terms(theirs)
    if isinstance(ours, Struct):
        for field in ours.FIELDS:
            if version in field.versions:
                other = their_value(theirs, field.name)
                if field.kind is Kind.UUID and other is None:
                    other = bytes(16)
                value = getattr(ours, field.name)
                if value is None and field.tag is not None and field.struct is not None:
                    value = field.struct()
                yield from differences(value, other, version, f"{path}.{field.name}")
    elif isinstance(ours, list) and theirs is not None and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, version, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} is not {theirs!r}"


def test_kio_covers_these_messages(capsys: pytest.CaptureFixture[str]) -> None:
    versions: dict[str, list[int]] = {}
    for message, version in COVERED:
        versions.setdefault(message.__name__, []).append(version)
    missing = {message.__name__ for message, _ in every_message()} - versions.keys()
    with capsys.disabled():
        print(f"\nkio covers {len(COVERED)} versions of {len(versions)} messages:")
        print(", ".join(f"{name} {seen[0]}-{seen[-1]}" for name, seen in versions.items()))
        print(f"and does not know {', '.join(sorted(missing))}")
    assert len(COVERED) > 400


@pytest.mark.parametrize(("message", "version"), CASES)
def test_kio_reads_and_writes_the_same_bytes(message: type[ApiMessage], version: int) -> None:
    schema = their_class(message, version)
    for seed in range(SAMPLES):
        sent = Sampler(seed, tame=True).message(message, version)
        frame = encode_frame(sent, version)[4:]
        pos = body_position(message, version, memoryview(frame))
        theirs, size = entity_reader(schema)(frame, pos)
        assert pos + size == len(frame)
        assert list(differences(sent, theirs, version, message.__name__)) == []
        out = io.BytesIO()
        entity_writer(schema)(out, theirs)
        assert out.getvalue() == frame[pos:]
        their_frame = memoryview(frame[:pos] + out.getvalue())
        assert decode_frame(message, version, their_frame) == sent
