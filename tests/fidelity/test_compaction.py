"""The same logs, compacted by Apache Kafka 2.5 and by us, and by each what the other has left."""

import re
from pathlib import Path
from typing import Final

import pytest

from storage.log_manager import LogManager
from storage.records import Batch, Codec, TimestampType, iter_records
from tests.fidelity.compacting import ISOLATIONS, ROUNDS, Compacted, both_rounds_with, segments_of
from tests.fidelity.dirty_logs import COMPACTED, NOW
from tests.fidelity.fixture_logs import batches_of
from tests.fidelity.test_open_fixtures import producers_in, read_all
from tests.support.apache_kafka import require_apache_kafka

TIMESTAMP_COMPLAINT: Final = re.compile(
    r"Found timestamp mismatch in :(.*)\n  Index timestamp: (\d+), log timestamp: -1\n"
)


@pytest.fixture(scope="module")
def both_rounds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compacted]:
    return both_rounds_with("2.5.1", tmp_path_factory.mktemp("compacted"))


@pytest.fixture(scope="module", params=ROUNDS)
def compacted(both_rounds: dict[str, Compacted], request: pytest.FixtureRequest) -> Compacted:
    return both_rounds[request.param]


def is_alike(ours: Batch, kafkas: Batch) -> bool:
    """Byte for byte the same, but where two compressors find different words for it."""
    if ours.data == kafkas.data:
        return True
    header = ours.header._replace(
        batch_length=kafkas.header.batch_length,
        crc=kafkas.header.crc,
    )
    return (
        ours.header.codec is not Codec.NONE
        and header == kafkas.header
        and list(iter_records(ours)) == list(iter_records(kafkas))
    )


def test_kafka_and_we_keep_the_same_batches(compacted: Compacted) -> None:
    for topic in compacted.ours.logs:
        ours, kafkas = (
            [batch for batches in segments_of(directory, topic).values() for batch in batches]
            for directory in (compacted.ours, compacted.kafkas)
        )
        assert offsets_of(ours) == offsets_of(kafkas), topic
        for our_batch, kafkas_batch in zip(ours, kafkas, strict=True):
            assert is_alike(our_batch, kafkas_batch), (topic, our_batch.header, kafkas_batch.header)


def offsets_of(batches: list[Batch]) -> list[int]:
    return [batch.header.base_offset for batch in batches]


def test_kafka_and_we_join_the_same_segments(
    both_rounds: dict[str, Compacted], compacted: Compacted
) -> None:
    for topic in compacted.ours.logs:
        ours, kafkas = (segments_of(d, topic) for d in (compacted.ours, compacted.kafkas))
        is_compressed = any(b.header.codec for batches in ours.values() for b in batches)
        if is_compressed and compacted is both_rounds["second"]:
            continue  # how many segments fit into one depends on the compressors of the first
        found = {name: offsets_of(batches) for name, batches in ours.items()}
        assert found == {name: offsets_of(batches) for name, batches in kafkas.items()}, topic


def test_what_there_was_to_compact_is_compacted(both_rounds: dict[str, Compacted]) -> None:
    """Nothing above shows anything unless batches were emptied, rebuilt and removed."""
    first, second = (
        [b for topic in one.ours.logs for s in segments_of(one.ours, topic).values() for b in s]
        for one in both_rounds.values()
    )
    data = [batch.header for batch in (*first, *second) if not batch.header.is_control]
    rebuilt = [h for h in data if 0 < h.record_count <= h.last_offset_delta]
    assert {h.codec for h in rebuilt} == set(Codec)
    emptied = [h for h in data if not h.record_count]
    assert {(h.is_transactional, h.timestamp_type) for h in emptied} >= {
        (True, TimestampType.CREATE_TIME),
        (False, TimestampType.CREATE_TIME),
    }
    markers = [
        [batch.header.record_count for batch in batches if batch.header.is_control]
        for batches in (first, second)
    ]
    assert 0 not in markers[0]
    assert 0 in markers[1], "a marker that is its producer's last word is emptied, not removed"


def test_kafka_and_we_date_segments_alike(compacted: Compacted) -> None:
    for topic in compacted.ours.logs:
        cleaned = compacted.ours.cleaned_offsets[topic, 0]
        for name in segments_of(compacted.ours, topic):
            if int(Path(name).stem) >= cleaned:
                continue
            for suffix in (".log", ".index", ".timeindex"):
                ours, kafkas = (
                    (d.path / f"{topic}-0" / name).with_suffix(suffix).stat().st_mtime_ns
                    for d in (compacted.ours, compacted.kafkas)
                )
                assert ours == kafkas, (topic, name, suffix)


def test_kafka_and_we_remember_the_same_progress(compacted: Compacted) -> None:
    assert compacted.ours.cleaned_offsets == compacted.kafkas.cleaned_offsets
    assert compacted.ours.cleaned_offsets.keys() == compacted.ours.partitions


def test_kafka_and_we_index_the_same_aborted_transactions(compacted: Compacted) -> None:
    indexed = 0
    for topic in compacted.ours.logs:
        for name in segments_of(compacted.ours, topic):
            ours, kafkas = (
                (d.path / f"{topic}-0" / name).with_suffix(".txnindex")
                for d in (compacted.ours, compacted.kafkas)
            )
            content = ours.read_bytes() if ours.exists() else b""
            assert content == (kafkas.read_bytes() if kafkas.exists() else b""), (topic, name)
            indexed += len(content)
    assert indexed > 0


def test_kafka_and_we_know_the_same_producers_afterwards(compacted: Compacted) -> None:
    for topic in compacted.ours.logs:
        ours, kafkas = (
            max((d.path / f"{topic}-0").glob("*.snapshot"))
            for d in (compacted.ours, compacted.kafkas)
        )
        assert ours.name == kafkas.name, topic
        assert producers_in(ours.read_bytes()) == producers_in(kafkas.read_bytes()), topic


def test_clients_of_kafka_read_what_we_read(compacted: Compacted) -> None:
    manager = LogManager([compacted.ours.path], COMPACTED, lambda: NOW)
    manager.load(compacted.ours.configs)
    for topic, partition in compacted.ours.partitions:
        log = manager.get(topic, partition)
        assert log is not None
        log.update_high_watermark(log.end_offset)
        for isolation, level in ISOLATIONS.items():
            found = list(read_all(log, level))
            assert found == compacted.consumed[isolation][topic, partition], (topic, isolation)
    manager.close()


def test_kafka_verifies_the_indexes_of_what_we_compacted(compacted: Compacted) -> None:
    kafka = require_apache_kafka("2.5.1")
    files = [
        path
        for suffix in ("index", "timeindex")
        for path in sorted(compacted.ours.path.glob(f"*-0/*.{suffix}"))
    ]
    complaints = kafka.dump_log(files, "--verify-index-only").errors
    for path, timestamp in TIMESTAMP_COMPLAINT.findall(complaints):
        # The tool looks for timestamps of records only, also in what Kafka has compacted.
        emptied = [b.header for b in batches_of(Path(path).with_suffix(".log"))]
        assert int(timestamp) in {h.max_timestamp for h in emptied if not h.record_count}
    assert TIMESTAMP_COMPLAINT.sub("", complaints).strip() == ""
    assert kafka.dump_log(files, "--index-sanity-check").errors == ""


def test_kafka_complains_of_nothing(compacted: Compacted) -> None:
    complaints = [
        line
        for line in compacted.log_text.splitlines()
        if (" WARN " in line or " ERROR " in line)
        and any(f"{topic}-0" in line for topic in compacted.ours.logs)
    ]
    assert complaints == []
