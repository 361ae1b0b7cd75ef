"""Logs written here are dumped, verified and served by Apache Kafka itself."""

import shutil
from typing import Final

import pytest

from storage.append_info import ReadIsolation
from storage.log_manager import LogManager
from tests.fidelity.clients import Rdkafka, consume, offsets_for_timestamp
from tests.fidelity.consumed import ConsumedRecord
from tests.fidelity.dumped import parse_dump
from tests.fidelity.our_logs import LAST_EPOCH, NOW, SMALL, OurDirectory
from tests.fidelity.registered import register_topics
from tests.fidelity.samples import FIRST_TIMESTAMP, Samples
from tests.fidelity.test_open_fixtures import read_all
from tests.support.apache_kafka import (
    RELEASES,
    ApacheKafka,
    KafkaBroker,
    require_apache_kafka,
)

ISOLATIONS: Final = ("read_uncommitted", "read_committed")
TIMESTAMPS: Final = (
    0,
    *range(FIRST_TIMESTAMP + 95, FIRST_TIMESTAMP + 20_000, 1_700),
    NOW,
    NOW + 3_605,
    NOW + 10**9,
)
WRITTEN_BY_KAFKA: Final = ("built-none", "received-lz4", "truncated", "deleted-records")


@pytest.fixture(scope="module", params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> ApacheKafka:
    return require_apache_kafka(request.param)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> OurDirectory:
    directory = OurDirectory(tmp_path_factory.mktemp("ours") / "data")
    directory.write()
    return directory


def test_our_segments_are_dumped_without_complaint(kafka: ApacheKafka, ours: OurDirectory) -> None:
    result = kafka.dump_log(ours.files(".log"), "--deep-iteration", "--print-data-log")
    assert result.errors == ""
    assert "invalid bytes" not in result.output
    dumped = parse_dump(result.output)
    assert all(batch.flag("isvalid") for file in dumped.values() for batch in file.batches)
    for (topic, _), records in ours.expected("read_uncommitted").items():
        files = [file for name, file in dumped.items() if f"/{topic}-0/" in name]
        found = [
            (
                record.number("offset"),
                record.timestamp,
                record.timestamp_type,
                record.number("keysize"),
                record.number("valuesize"),
            )
            for file in files
            for record in file.records
            if "endTxnMarker" not in record and record.number("offset") >= records[0].offset
        ]
        assert found == [_as_dumped(record) for record in records], topic


def _as_dumped(record: ConsumedRecord) -> tuple[int, int, str, int, int]:
    sizes = [-1 if field is None else len(field) for field in (record.key, record.value)]
    return (record.offset, record.timestamp, record.timestamp_type, sizes[0], sizes[1])


def test_our_indexes_are_verified_without_complaint(kafka: ApacheKafka, ours: OurDirectory) -> None:
    files = [*ours.files(".index"), *ours.files(".timeindex")]
    assert len(files) > 2 * len(ours.logs), "several segments"
    assert kafka.dump_log(files, "--verify-index-only").errors == ""
    sane = kafka.dump_log(files, "--index-sanity-check")
    assert sane.errors == ""
    found = [sane.output.count(text) for text in ("passed sanity check", "is empty")]
    assert sum(found) == len(files)


def test_our_snapshots_and_transaction_indexes_are_dumped(
    kafka: ApacheKafka, ours: OurDirectory
) -> None:
    result = kafka.dump_log([*ours.files(".txnindex"), *ours.files(".snapshot")])
    assert result.errors == ""
    dumped = parse_dump(result.output)
    markers = [
        entry.number("lastOffset")
        for name, file in dumped.items()
        if name.endswith(".txnindex")
        for entry in file.entries
    ]
    hidden = ours.logs["transactional"].hidden
    assert markers == sorted(markers)
    assert len(markers) == 8  # of two producers' twelve transactions every third one
    assert max(hidden) < markers[-1]
    producers = {
        entry.number("producerId")
        for name, file in dumped.items()
        if name.endswith(".snapshot")
        for entry in file.entries
    }
    assert producers == {10, 11, 12, 20, 21}


def timed_partitions(ours: OurDirectory) -> list[tuple[str, int]]:
    """Records of magic 0 have no timestamps to look for."""
    return [(topic, partition) for topic, partition in ours.partitions if "v0-" not in topic]


class Served:
    """What became of our directory in the hands of a broker of Kafka's."""

    def __init__(self, broker: KafkaBroker, ours: OurDirectory) -> None:
        self.ours = ours
        self.data = broker.data
        self.startup_log = broker.log_text
        self.read = {
            isolation: consume(broker.bootstrap, ours.partitions, isolation=isolation)
            for isolation in ISOLATIONS
        }
        write_more(broker.bootstrap)
        self.read_after = {
            isolation: consume(broker.bootstrap, ours.partitions, isolation=isolation)
            for isolation in ISOLATIONS
        }
        self.offsets = {
            timestamp: offsets_for_timestamp(broker.bootstrap, timed_partitions(ours), timestamp)
            for timestamp in TIMESTAMPS
        }


@pytest.fixture(scope="module")
def served(
    kafka: ApacheKafka, ours: OurDirectory, tmp_path_factory: pytest.TempPathFactory
) -> Served:
    """Our directory, served by Kafka, written to, and stopped cleanly."""
    directory = tmp_path_factory.mktemp("served")
    shutil.copytree(ours.path, directory / "data")
    with kafka.zookeeper(directory / "zookeeper") as zookeeper:
        register_topics(zookeeper.connect, ours.configs, LAST_EPOCH)
        settings = {"log.dirs": str(directory / "data"), "auto.create.topics.enable": "false"}
        broker = KafkaBroker(kafka, directory / "broker", zookeeper.connect, settings)
        try:
            broker.start()
            served = Served(broker, ours)
            broker.stop()
        finally:
            broker.kill()
    return served


def write_more(bootstrap: str) -> None:
    plain = Rdkafka(bootstrap, compression_type="zstd")
    for topic in WRITTEN_BY_KAFKA:
        for batch in Samples(f"more {topic}").batches(5):
            plain.send(topic, batch)
    transactional = Rdkafka(bootstrap, transactional_id="more")
    transactional.producer.init_transactions(30)
    for number in range(4):
        transactional.producer.begin_transaction()
        transactional.send("transactional", Samples(f"more {number}").take(3))
        if number % 2:
            transactional.producer.commit_transaction(30)
        else:
            transactional.producer.abort_transaction(30)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_kafka_serves_our_directory_record_for_record(served: Served, isolation: str) -> None:
    assert served.read[isolation] == served.ours.expected(isolation)


def test_kafka_finds_nothing_to_repair_in_our_directory(served: Served) -> None:
    partitions = [f"{topic}-{partition}" for topic, partition in served.ours.partitions]
    complaints = [
        line
        for line in served.startup_log.splitlines()
        if (" WARN " in line or " ERROR " in line) and any(one in line for one in partitions)
    ]
    assert complaints == []
    for repair in ("Recovering unflushed segment", "recovering segment"):
        assert repair not in served.startup_log


def test_we_read_what_kafka_added_to_our_directory(served: Served) -> None:
    manager = LogManager([served.data], SMALL, lambda: NOW)
    manager.load(served.ours.configs)
    for topic, partition in served.ours.partitions:
        log = manager.get(topic, partition)
        assert log is not None
        for isolation, level in zip(
            ISOLATIONS, (ReadIsolation.HIGH_WATERMARK, ReadIsolation.COMMITTED), strict=True
        ):
            records = list(read_all(log, level))
            assert records == served.read_after[isolation][topic, partition], topic
        added = served.read_after["read_uncommitted"][topic, partition]
        is_written = topic in WRITTEN_BY_KAFKA or topic == "transactional"
        assert is_written == (len(added) > len(served.read["read_uncommitted"][topic, partition]))
    manager.close()


def test_we_find_timestamps_where_kafka_finds_them(served: Served) -> None:
    manager = LogManager([served.data], SMALL, lambda: NOW)
    manager.load(served.ours.configs)
    for timestamp, offsets in served.offsets.items():
        for (topic, partition), offset in offsets.items():
            log = manager.get(topic, partition)
            assert log is not None
            found = log.offset_for_timestamp(timestamp)
            if topic == "deleted-records":
                # Kafka finds nothing if the first segment that is young enough lies before the
                # start of the log, as it may until the next clean-up. We go on searching.
                records = served.read_after["read_uncommitted"][topic, partition]
                offset = next((r.offset for r in records if r.timestamp >= timestamp), -1)
            assert (-1 if found is None else found.offset) == offset, (topic, timestamp)
    manager.close()
