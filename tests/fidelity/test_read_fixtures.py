"""Logs that Apache Kafka wrote are read here as Kafka's own tools and consumers read them."""

from itertools import groupby
from pathlib import Path

import pytest

from storage.checkpoint import read_offsets
from storage.environment import Environment
from storage.files import Files
from storage.leader_epochs import LeaderEpochs
from storage.meta_properties import read_meta_properties
from storage.offset_index import OffsetIndex
from storage.producer_snapshot import decode_snapshot
from storage.records import Batch, iter_records
from storage.records.control import parse_end_txn_marker
from storage.time_index import TimeIndex
from storage.txn_index import TxnIndex
from tests.fidelity.dumped import Fields
from tests.fidelity.fixture_logs import (
    RELEASES,
    TIMESTAMP_TYPE_NAMES,
    FixtureLog,
    batches_of,
    data_directory,
    fixture_logs,
    records_in,
)

each_log = pytest.mark.parametrize("log", fixture_logs(), ids=str)
each_release = pytest.mark.parametrize("release", RELEASES)


@pytest.fixture
def environment() -> Environment:
    return Environment(clock=lambda: 0)  # nothing here depends on the time


@each_log
def test_every_record_is_the_one_that_a_consumer_read(log: FixtureLog) -> None:
    expected = log.consumed()
    start_offset = expected[0].offset
    found = [r for path in log.files(".log") for r in records_in(batches_of(path))]
    assert [record for record in found if record.offset >= start_offset] == expected


@each_log
def test_every_batch_header_is_the_one_that_kafka_dumps(log: FixtureLog) -> None:
    for path in log.files(".log"):
        batches = batches_of(path)
        dumped = log.dumped(path).batches
        assert len(batches) == len(dumped)
        position = 0
        for batch, fields in zip(batches, dumped, strict=True):
            _check_batch(batch, position, fields)
            position += len(batch.data)


def _check_batch(batch: Batch, position: int, fields: Fields) -> None:
    header = batch.header
    assert (header.magic, position, len(batch.data)) == (
        fields.number("magic"),
        fields.number("position"),
        fields.number("size"),
    )
    assert header.crc == fields.number("crc")
    assert fields.flag("isvalid")
    assert header.codec.name == fields["compresscodec"].upper()
    assert header.max_timestamp == fields.timestamp
    assert TIMESTAMP_TYPE_NAMES[header.timestamp_type] == fields.timestamp_type
    if header.magic < 2:
        assert header.last_offset == fields.number("offset")
        return
    numbers = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
    }
    assert numbers == {name: fields.number(name) for name in numbers}
    assert header.is_transactional == fields.flag("isTransactional")
    assert header.is_control == fields.flag("isControl")


@each_log
def test_every_record_has_the_sizes_and_markers_that_kafka_dumps(log: FixtureLog) -> None:
    for path in log.files(".log"):
        found = [(b, record) for b in batches_of(path) for record in iter_records(b)]
        for (batch, record), fields in zip(found, log.dumped(path).records, strict=True):
            assert record.offset == fields.number("offset")
            assert record.timestamp == fields.timestamp
            assert _size(record.key) == fields.number("keysize")
            assert _size(record.value) == fields.number("valuesize")
            if batch.header.magic == 2:
                names = ",".join(name for name, _ in record.headers)
                assert fields["headerKeys"] == f"[{names}]"
            if batch.header.is_control:
                marker = parse_end_txn_marker(record.key, record.value)
                assert marker.control_type.name == fields["endTxnMarker"]
                assert marker.coordinator_epoch == fields.number("coordinatorEpoch")


def _size(field: bytes | None) -> int:
    return -1 if field is None else len(field)


@each_log
def test_index_entries_are_those_that_kafka_dumps(
    log: FixtureLog, environment: Environment
) -> None:
    for path in log.files(".index"):
        size = path.stat().st_size
        offsets = OffsetIndex(environment, str(path), int(path.stem), size, size)
        assert [offsets.entry(slot) for slot in range(offsets.entries)] == [
            (entry.number("offset"), entry.number("position")) for entry in log.dumped(path).entries
        ]


@each_log
def test_time_index_entries_are_those_that_kafka_dumps(
    log: FixtureLog, environment: Environment
) -> None:
    for path in log.files(".timeindex"):
        base_offset, size = int(path.stem), path.stat().st_size
        times = TimeIndex(environment, str(path), base_offset, size, size)
        found = [times.entry(slot) for slot in range(times.entries)]
        dumped = [(e.number("timestamp"), e.number("offset")) for e in log.dumped(path).entries]
        assert found[: len(dumped)] == dumped
        # The tool takes an entry with the base offset for the empty rest of a crashed segment.
        assert len(found) == len(dumped) or found[len(dumped)][1] == base_offset


@each_log
def test_producer_snapshots_hold_what_kafka_dumps(log: FixtureLog) -> None:
    for path in log.files(".snapshot"):
        for entry, fields in zip(
            decode_snapshot(path.read_bytes()), log.dumped(path).entries, strict=True
        ):
            assert entry.producer_id == fields.number("producerId")
            assert entry.epoch == fields.number("producerEpoch")
            assert entry.coordinator_epoch == fields.number("coordinatorEpoch")
            assert entry.txn_first_offset == _transaction_start(fields)
            spans = [
                (span.first_sequence, span.last_sequence, span.last_offset, span.offset_delta)
                for span in entry.batches
            ]
            names = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta")
            if "lastOffset" in fields:
                assert spans == [tuple(fields.number(name) for name in names)]
                assert entry.last_timestamp == fields.number("timestamp")
            else:
                assert spans == []


def _transaction_start(fields: Fields) -> int:
    digits = "".join(filter(str.isdigit, fields["currentTxnFirstOffset"]))
    return int(digits) if digits else -1


@each_log
def test_aborted_transactions_are_those_that_kafka_dumps(
    log: FixtureLog, environment: Environment
) -> None:
    for path in log.files(".txnindex"):
        size = path.stat().st_size
        index = TxnIndex(environment, str(path), int(path.stem), size)
        names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
        assert [tuple(entry) for entry in index.entries] == [
            tuple(fields.number(name) for name in names) for fields in log.dumped(path).entries
        ]


@each_log
def test_leader_epochs_begin_where_batches_of_them_begin(log: FixtureLog) -> None:
    epochs = LeaderEpochs(Files(), str(log.path))
    epochs.load()
    headers = [batch.header for path in log.files(".log") for batch in batches_of(path)]
    if any(header.magic < 2 for header in headers) or log.config.compacts:
        return  # older formats carry no epochs, and compaction removes first batches
    first_offset = log.consumed()[0].offset
    written = [
        (epoch, max(next(group).base_offset, first_offset))
        for epoch, group in groupby(headers, key=lambda h: h.partition_leader_epoch)
    ]
    assert [tuple(entry) for entry in epochs.entries] == written


@each_release
def test_checkpoints_and_meta_properties_are_read(release: str) -> None:
    data = data_directory(release)
    files = Files()
    names = {path.name for path in data.iterdir() if path.is_dir()}
    ends = read_offsets(files, data / "recovery-point-offset-checkpoint")
    assert {f"{topic}-{partition}" for topic, partition in ends} == names
    assert read_offsets(files, data / "replication-offset-checkpoint") == ends
    starts = read_offsets(files, data / "log-start-offset-checkpoint")
    assert starts["deleted-records", 0] == 21
    cleaned = read_offsets(files, data / "cleaner-offset-checkpoint")
    assert ("compacted", 0) in cleaned
    meta = read_meta_properties(files, data)
    assert meta is not None
    assert meta.broker_id == 0
    assert f"cluster.id={meta.cluster_id}" in (data / "meta.properties").read_text().split()


@each_release
def test_fixtures_show_all_that_they_are_kept_for(release: str) -> None:
    """Should the fixtures be made anew, they must not silently show less."""
    logs = [log for log in fixture_logs() if log.release == release]
    headers = [b.header for log in logs for path in log.files(".log") for b in batches_of(path)]
    magics = {0, 1, 2} if release == "2.5.1" else {2}
    legacy_codecs = {"NONE", "GZIP", "SNAPPY", "LZ4"}
    for magic in magics:
        codecs = {header.codec.name for header in headers if header.magic == magic}
        assert codecs == (legacy_codecs | {"ZSTD"} if magic == 2 else legacy_codecs)
    assert any(header.is_control for header in headers)
    assert any(header.record_count == 0 for header in headers if header.magic == 2)
    assert {header.partition_leader_epoch for header in headers} >= {0, 3}
    for suffix in (".txnindex", ".snapshot", "leader-epoch-checkpoint"):
        assert any(log.files(suffix) for log in logs), suffix
    values = [record.value for log in logs for record in log.consumed() if "compact" in log.name]
    assert None in values, "tombstones"
    open_transactions = [
        entry.txn_first_offset
        for path in _last_snapshots(logs)
        for entry in decode_snapshot(path.read_bytes())
        if entry.txn_first_offset >= 0
    ]
    assert open_transactions


def _last_snapshots(logs: list[FixtureLog]) -> list[Path]:
    return [snapshots[-1] for log in logs if (snapshots := log.files(".snapshot"))]
