"""Our bytes against those of kafka-python's codec, in both directions.

kafka-python decodes what ours encoded and must see the same values under the same names; what
it then encodes itself must be the same bytes, and decode to the message that was sent.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import kafka.protocol
import pytest
from kafka.protocol.api_message import ApiMessage as TheirMessage

from network.protocol.messages.api_versions import ApiVersionsResponse
from network.protocol.schema import ApiMessage, Field, Kind, Request, Struct
from tests.unit.network.protocol.frames import body_position, decode_frame, encode_frame
from tests.unit.network.protocol.samples import Sampler, every_message, title

SAMPLES = 8


def their_classes() -> dict[str, Any]:
    """Every message that kafka-python declares, by name."""
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and not module.name.endswith("generate_stubs"):
            importlib.import_module(module.name)
    return {cls.__name__: cls for cls in TheirMessage.__subclasses__()}


THEIRS = their_classes()


def covered() -> Iterator[tuple[type[ApiMessage], int]]:
    for message, version in every_message():
        their_class = THEIRS.get(message.__name__)
        if their_class is not None and version <= their_class.max_version:
            yield message, version


COVERED = list(covered())


def their_value(owner: Any, field: Field) -> Any:
    """What they hold for a field, in our terms."""
    if field.name.endswith("authorized_operations") and field.kind is Kind.INT32:
        # They name it anew and make a set of bits of it; none at all stands for the sign bit.
        bits = {31} if owner.authorized_operations is None else owner.authorized_operations
        return sum(1 << bit for bit in bits) - (1 << 32) * (31 in bits)
    value = getattr(owner, field.name)
    return value.bytes if field.kind is Kind.UUID else value


def sample(seed: int, message: type[ApiMessage], version: int) -> ApiMessage:
    made = Sampler(seed).message(message, version)
    if isinstance(made, ApiVersionsResponse):
        made.error_code = 0  # otherwise they take the response for one of version 0
    return made


def differences(ours: Any, theirs: Any, version: int, path: str) -> Iterator[str]:
    """Where a value of ours is not what they decoded."""
    if isinstance(ours, Struct):
        for field in ours.FIELDS:
            if version in field.versions:
                value = getattr(ours, field.name)
                other = their_value(theirs, field)
                yield from differences(value, other, version, f"{path}.{field.name}")
    elif isinstance(ours, list):
        if theirs is None or len(ours) != len(theirs):
            yield f"{path}: {ours!r} is not {theirs!r}"
        else:
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                yield from differences(one, other, version, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} is not {theirs!r}"


def test_kafka_python_covers_these_messages(capsys: pytest.CaptureFixture[str]) -> None:
    versions: dict[str, list[int]] = {}
    for message, version in COVERED:
        versions.setdefault(message.__name__, []).append(version)
    missing = {message.__name__ for message, _ in every_message()} - versions.keys()
    with capsys.disabled():
        print(f"\nkafka-python covers {len(COVERED)} versions of {len(versions)} messages:")
        print(", ".join(f"{name} {seen[0]}-{seen[-1]}" for name, seen in versions.items()))
        print(f"and does not know {', '.join(sorted(missing))}")
    assert len(COVERED) > 400


@pytest.mark.parametrize(
    ("message", "version"), [pytest.param(*case, id=title(*case)) for case in COVERED]
)
def test_kafka_python_reads_and_writes_the_same_bytes(
    message: type[ApiMessage], version: int
) -> None:
    for seed in range(SAMPLES):
        sent = sample(seed, message, version)
        frame = memoryview(encode_frame(sent, version))[4:]
        body = frame[body_position(message, version, frame) :]
        theirs = THEIRS[message.__name__].decode(body, version=version)
        assert list(differences(sent, theirs, version, message.__name__)) == []
        theirs._header = None
        their_body = bytes(theirs.encode(version=version))
        assert their_body == bytes(body)
        their_frame = bytes(frame[: -len(body) or None]) + their_body
        assert decode_frame(message, version, memoryview(their_frame)) == sent


@pytest.mark.parametrize(
    ("message", "version"),
    [pytest.param(*case, id=title(*case)) for case in COVERED if issubclass(case[0], Request)],
)
def test_kafka_python_writes_the_same_request_headers(
    message: type[ApiMessage], version: int
) -> None:
    frame = encode_frame(message(), version)
    body = memoryview(frame)[4 + body_position(message, version, memoryview(frame)[4:]) :]
    theirs = THEIRS[message.__name__].decode(body, version=version)
    theirs._header = None
    theirs.with_header(correlation_id=1_234_567, client_id="tester")
    assert bytes(theirs.encode(header=True, framed=True)) == frame
