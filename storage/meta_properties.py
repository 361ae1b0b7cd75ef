"""`meta.properties`: which broker of which cluster a log directory belongs to.

Owns the file's format (Java properties, version 0) and its atomic replacement. What a mismatch
means is the broker's decision.
"""

from pathlib import Path
from typing import Final, NamedTuple

from storage.errors import CorruptCheckpointError
from storage.files import Files

META_PROPERTIES: Final = "meta.properties"
_VERSION: Final = 0


class MetaProperties(NamedTuple):
    """Whose directory it is; clusters before Kafka 0.10.1 had no id."""

    broker_id: int
    cluster_id: str | None = None


def read_meta_properties(files: Files, directory: Path) -> MetaProperties | None:
    """What a log directory says of itself; None if it says nothing yet."""
    path = directory / META_PROPERTIES
    try:
        text = files.read_whole(path).decode()
    except FileNotFoundError:
        return None
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", "!")):
            fields[name.strip()] = value.strip()
    try:
        version, broker_id = int(fields["version"]), int(fields["broker.id"])
    except (KeyError, ValueError):
        raise CorruptCheckpointError(f"{path} lacks a version or a broker.id") from None
    if version != _VERSION:
        raise CorruptCheckpointError(f"{path} has version {version}, {_VERSION} is expected")
    return MetaProperties(broker_id, fields.get("cluster.id"))


def write_meta_properties(files: Files, directory: Path, meta: MetaProperties) -> None:
    """Replace a log directory's file, durably."""
    lines = ["#", f"broker.id={meta.broker_id}", f"version={_VERSION}"]
    if meta.cluster_id is not None:
        lines.append(f"cluster.id={meta.cluster_id}")
    text = "\n".join([*lines, ""])
    files.replace_whole(directory / META_PROPERTIES, text.encode())
