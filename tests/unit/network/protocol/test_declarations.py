"""Our declarations against the schemas of Apache Kafka's that kafka-python ships.

Compared are the facts that no bytes show: defaults, tags, where null is allowed, and what may be
dropped. Only versions that we declare count; the schemas are of a later Kafka.
"""

import importlib.resources
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from network.protocol import ApiKey, request_class, response_class
from network.protocol.schema import ZERO_UUID, ApiMessage, Field, Kind, Struct
from network.protocol.versions import Versions, parse_versions

SCHEMAS = importlib.resources.files("kafka.protocol.schemas.resources")
KINDS = {
    "bool": Kind.BOOLEAN,
    "int8": Kind.INT8,
    "int16": Kind.INT16,
    "int32": Kind.INT32,
    "int64": Kind.INT64,
    "float64": Kind.FLOAT64,
    "uuid": Kind.UUID,
    "string": Kind.STRING,
    "bytes": Kind.BINARY,
    "records": Kind.BATCHES,
}
# Fields that a later version replaced, and that became ignorable only then.
IGNORABLE_LATER = {
    "ProduceRequest.topic_data.name",
    "ProduceResponse.responses.name",
    "OffsetCommitRequest.topics.name",
    "OffsetCommitResponse.topics.name",
    "OffsetFetchRequest.groups.topics.name",
    "OffsetFetchResponse.groups.topics.name",
    "UpdateFeaturesResponse.results",
}


def schema_of(message: type[ApiMessage]) -> Any:
    text = (SCHEMAS / f"{message.__name__}.json").read_text()
    return json.loads(re.sub(r'(^\s*//.*$)|(//[^"\n]*$)', "", text, flags=re.MULTILINE))


def has_schema(message: type[ApiMessage]) -> bool:
    return (SCHEMAS / f"{message.__name__}.json").is_file()


COVERED = [
    message
    for api in ApiKey
    for message in (request_class(api), response_class(api))
    if has_schema(message)
]


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def within(versions: Versions, message: type[ApiMessage]) -> set[int]:
    return set(range(versions.lowest, min(versions.highest, message.VERSIONS.highest) + 1))


def default_of(field: Any, kind: Kind) -> Any:
    """The default that a schema gives a field, in our terms."""
    if kind in (Kind.STRUCT, Kind.BATCHES):
        return None
    implicit = {Kind.STRING: "", Kind.BINARY: b"", Kind.ARRAY: [], Kind.UUID: ZERO_UUID}
    match field.get("default"):
        case None:
            return implicit.get(kind, 0)
        case "null":
            return None
        case "true" | "false" as text:
            return text == "true"
        case str() as text if kind is not Kind.STRING:
            return int(text, 0)
        case given:
            return given


def differences(ours: Field, theirs: Any, message: type[ApiMessage], path: str) -> Iterator[str]:
    kind = Kind.ARRAY if theirs["type"].startswith("[]") else KINDS.get(theirs["type"], Kind.STRUCT)
    nullable = parse_versions(theirs.get("nullableVersions", "none"))
    element = KINDS.get(theirs["type"][2:], Kind.STRUCT) if kind is Kind.ARRAY else None
    facts = {
        "kind": (ours.kind, kind),
        "element": (ours.element, element),
        "versions": (
            within(ours.versions, message),
            within(parse_versions(theirs["versions"]), message),
        ),
        "null": (within(ours.nullable, message), within(nullable, message)),
        "default": (ours.default, default_of(theirs, kind)),
        "tag": (ours.tag, theirs.get("tag")),
        "ignorable": (
            ours.ignorable or path in IGNORABLE_LATER,
            theirs.get("ignorable", False),
        ),
    }
    for fact, (our_fact, their_fact) in facts.items():
        if our_fact != their_fact:
            yield f"{path} has {fact} {our_fact}, not {their_fact}"


def all_differences(
    struct: type[Struct], fields: Any, shared: Any, message: type[ApiMessage], path: str
) -> Iterator[str]:
    ours = {field.name: field for field in struct.FIELDS}
    theirs = {
        snake_case(field["name"]): field
        for field in fields
        if within(parse_versions(field["versions"]), message)
    }
    if ours.keys() != theirs.keys():
        yield f"{path} has fields {list(ours)}, not {list(theirs)}"
    for name in ours.keys() & theirs.keys():
        yield from differences(ours[name], theirs[name], message, f"{path}.{name}")
        nested = ours[name].struct
        if nested is not None:
            inner = theirs[name].get("fields") or shared[theirs[name]["type"].removeprefix("[]")]
            yield from all_differences(nested, inner, shared, message, f"{path}.{name}")


@pytest.mark.parametrize("message", COVERED, ids=lambda message: message.__name__)
def test_a_message_is_declared_as_in_kafka(message: type[ApiMessage]) -> None:
    schema = schema_of(message)
    shared = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    assert str(message.FLEXIBLE) == schema["flexibleVersions"]
    found = all_differences(message, schema["fields"], shared, message, message.__name__)
    assert list(found) == []
