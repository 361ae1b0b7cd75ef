"""The records of the coordinators' topics in the logs that Kafka wrote."""

from pathlib import Path
from typing import Final

from storage.records import iter_batches, iter_records

RELEASES: Final = ("2.5.1", "3.9.1")
_FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"


def coordinator_records(release: str, directory: str) -> list[tuple[bytes, bytes | None]]:
    """Key and value of every record but the markers."""
    return [
        (record.key or b"", record.value)
        for path in sorted((_FIXTURES / f"kafka-{release}" / "data" / directory).glob("*.log"))
        for batch in iter_batches(path.read_bytes())
        if not batch.header.is_control
        for record in iter_records(batch)
    ]
