"""Log directories that Apache Kafka wrote are opened by our log manager: clean, and repaired."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.append_info import ReadIsolation
from storage.checkpoint import read_offsets
from storage.files import Files
from storage.log import Log
from storage.log_manager import LogManager
from storage.producer_snapshot import decode_snapshot
from storage.records import Batch, iter_batches
from storage.txn_index import AbortedTransaction
from tests.fidelity.consumed import ConsumedRecord
from tests.fidelity.fixture_logs import (
    INTERNAL_TOPIC,
    RELEASES,
    FixtureLog,
    copy_data,
    data_directory,
    fixture_logs,
    records_in,
    recovered_by_kafka,
    time_of_making,
    topic_configs,
)

CRASH_REMOVES = (
    ".kafka_cleanshutdown",
    "recovery-point-offset-checkpoint",
    "*-*/*.index",
    "*-*/*.timeindex",
    "*-*/*.txnindex",
    "*-*/*.snapshot",
)

each_release = pytest.mark.parametrize("release", RELEASES)


def open_directory(data: Path, release: str) -> LogManager:
    manager = LogManager([data], INTERNAL_TOPIC, lambda: time_of_making(release))
    manager.load(topic_configs(release))
    return manager


def logs_of(release: str) -> list[FixtureLog]:
    return [log for log in fixture_logs() if log.release == release]


def opened(manager: LogManager, fixture: FixtureLog) -> Log:
    log = manager.get(fixture.topic, 0)
    assert log is not None
    return log


def read_all(log: Log, isolation: ReadIsolation) -> Iterator[ConsumedRecord]:
    """What a consumer of the log sees, fetched in small steps."""
    offset = log.start_offset
    while True:
        read = log.read(offset, 1000, isolation)
        batches = list(iter_batches(read.slice.read()))
        if not batches:
            return
        if read.aborted is not None:
            batches = [batch for batch in batches if not _is_aborted(batch, read.aborted)]
        yield from (record for record in records_in(batches) if record.offset >= offset)
        offset = list(iter_batches(read.slice.read()))[-1].header.next_offset


def _is_aborted(batch: Batch, aborted: list[AbortedTransaction]) -> bool:
    header = batch.header
    return header.is_transactional and any(
        transaction.producer_id == header.producer_id
        and transaction.first_offset <= header.base_offset <= transaction.last_offset
        for transaction in aborted
    )


@each_release
def test_a_cleanly_stopped_directory_is_read_as_a_consumer_of_kafka_reads_it(
    release: str, tmp_path: Path
) -> None:
    manager = open_directory(copy_data(release, tmp_path / "data"), release)
    for fixture in logs_of(release):
        log = opened(manager, fixture)
        assert list(read_all(log, ReadIsolation.HIGH_WATERMARK)) == fixture.consumed(), fixture
        committed = list(read_all(log, ReadIsolation.COMMITTED))
        assert committed == fixture.consumed("read_committed"), fixture
    manager.close()


@each_release
def test_opening_and_closing_changes_no_segment_of_kafka(release: str, tmp_path: Path) -> None:
    data = copy_data(release, tmp_path / "data")
    open_directory(data, release).close()
    for fixture in logs_of(release):
        before = {p.name: p.read_bytes() for p in fixture.path.iterdir()}
        after = {p.name: p.read_bytes() for p in (data / fixture.name).iterdir()}
        if release != "2.5.1":
            # Later releases keep a snapshot per segment; 2.5 keeps those that recovery needs.
            before = {n: b for n, b in before.items() if n in after or not n.endswith(".snapshot")}
        assert after == before, fixture
    for name in ("recovery-point", "replication", "log-start"):
        checkpoint = f"{name}-offset-checkpoint"
        assert read_offsets(Files(), data / checkpoint) == read_offsets(
            Files(), data_directory(release) / checkpoint
        )
    assert (data / ".kafka_cleanshutdown").exists()


@each_release
def test_recovery_makes_anew_what_kafka_makes_anew(release: str, tmp_path: Path) -> None:
    """After a crash that left nothing but records, every index, snapshot and epoch is Kafka's."""
    data = copy_data(release, tmp_path / "data")
    for pattern in CRASH_REMOVES:
        for path in data.glob(pattern):
            path.unlink()
    manager = open_directory(data, release)
    for fixture in logs_of(release):
        log = opened(manager, fixture)
        log.update_high_watermark(log.end_offset)
        assert list(read_all(log, ReadIsolation.HIGH_WATERMARK)) == fixture.consumed(), fixture
    manager.close()
    for name, content in recovered_by_kafka(release).items():
        path = data / name
        if path.suffix != ".snapshot":
            assert path.read_bytes() == content, name
        elif path.exists() or release == "2.5.1":  # later releases keep more of them
            assert producers_in(path.read_bytes()) == producers_in(content), name


def producers_in(snapshot: bytes) -> list[tuple[object, ...]]:
    """A snapshot's producers in order of their ids; Kafka writes them in that of a hash map."""
    return sorted(
        (
            entry.producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.txn_first_offset,
            *entry.batches,
        )
        for entry in decode_snapshot(snapshot)
    )
