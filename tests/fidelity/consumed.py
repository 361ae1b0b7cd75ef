"""What a consumer read from Kafka, and how that is kept beside the logs it was read from.

Owns the JSON form: bytes are base64, a partition is named as its directory is.
"""

import base64
import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.fidelity.samples import Headers


class ConsumedRecord(NamedTuple):
    """A record as a consumer hands it over; the timestamp is -1 where there is none."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Headers


ReadTopic = dict[tuple[str, int], list[ConsumedRecord]]


def write_consumed(path: Path, read: ReadTopic) -> None:
    rows = {
        f"{topic}-{partition}": [_to_row(record) for record in records]
        for (topic, partition), records in sorted(read.items())
    }
    text = json.dumps(rows, separators=(",", ":"), indent=None)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_consumed(path: Path) -> dict[str, list[ConsumedRecord]]:
    """The records by name of partition directory."""
    rows = json.loads(gzip.decompress(path.read_bytes()))
    return {name: [_from_row(row) for row in records] for name, records in rows.items()}


def _to_row(record: ConsumedRecord) -> list[Any]:
    headers = [[name, _encode(value)] for name, value in record.headers]
    return [*record[:3], _encode(record.key), _encode(record.value), headers]


def _from_row(row: list[Any]) -> ConsumedRecord:
    offset, timestamp, timestamp_type, key, value, headers = row
    return ConsumedRecord(
        offset,
        timestamp,
        timestamp_type,
        _decode(key),
        _decode(value),
        tuple((name, _decode(header)) for name, header in headers),
    )


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
