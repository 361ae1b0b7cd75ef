"""The batch table of logs that Apache Kafka wrote, against the records that are in them."""

import os
from pathlib import Path

import pytest

from analytics.logs.partitions import PartitionLog, find_partitions
from storage.batch_scan import scan_batches
from storage.files import Files
from storage.records.batches import iter_records
from tests.unit.analytics.segments import read_segment

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PARTITIONS = [
    log for release in sorted(FIXTURES.glob("kafka-*/data")) for log in find_partitions(release)
]


def records_in(log: PartitionLog) -> int:
    """Records that consumers see, found by opening every batch."""
    files = Files()
    return sum(
        sum(1 for _ in iter_records(scanned.batch))
        for segment in log.segments
        for scanned in scan_batches(files.open(segment.path, os.O_RDONLY), 0, segment.size)
        if not scanned.batch.header.is_control
    )


@pytest.mark.parametrize(
    "log", PARTITIONS, ids=[f"{Path(log.log_dir).parent.name}-{log.topic}" for log in PARTITIONS]
)
def test_headers_tell_as_many_records_as_the_batches_hold(log: PartitionLog) -> None:
    rows = [
        row
        for segment in log.segments
        for table in read_segment(segment)
        for row in table.to_pylist()
    ]
    assert sum(row["record_count"] for row in rows if not row["is_control"]) == records_in(log)
    assert sum(row["bytes"] for row in rows) == log.size
