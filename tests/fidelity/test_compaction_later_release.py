"""Kafka 3.9 and we compact the same logs, and what the other has left.

It writes the time at which a batch's tombstones may go into the batch, and keeps them until then:
what it leaves differs from what 2.5 and we leave there, and nowhere else.
"""

import pytest

from storage.append_info import ReadIsolation
from storage.log_manager import LogManager
from storage.records import iter_records
from storage.records.record import Record
from tests.fidelity.compacting import ROUNDS, Compacted, both_rounds_with, segments_of
from tests.fidelity.dirty_logs import COMPACTED, NOW, DirtyDirectory
from tests.fidelity.test_open_fixtures import read_all


@pytest.fixture(scope="module")
def both_rounds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compacted]:
    return both_rounds_with("3.9.1", tmp_path_factory.mktemp("compacted"))


def test_kafka_and_we_keep_the_same_records(
    both_rounds: dict[str, Compacted],
) -> None:
    first = both_rounds["first"]
    for topic in first.ours.logs:
        ours, kafkas = (survivors(directory, topic) for directory in (first.ours, first.kafkas))
        assert ours == kafkas, topic


@pytest.mark.parametrize("number", ROUNDS)
def test_kafka_and_we_keep_the_same_values(both_rounds: dict[str, Compacted], number: str) -> None:
    compacted = both_rounds[number]
    for topic in compacted.ours.logs:
        ours, kafkas = (
            [record for record in survivors(directory, topic) if record.value is not None]
            for directory in (compacted.ours, compacted.kafkas)
        )
        assert ours == kafkas, topic
        assert ours, topic


@pytest.mark.parametrize("number", ROUNDS)
def test_what_kafka_and_we_compact_in_turn_is_read_alike(
    both_rounds: dict[str, Compacted], number: str
) -> None:
    compacted = both_rounds[number]
    manager = LogManager([compacted.ours.path], COMPACTED, lambda: NOW)
    manager.load(compacted.ours.configs)
    for topic, partition in compacted.ours.partitions:
        log = manager.get(topic, partition)
        assert log is not None
        log.update_high_watermark(log.end_offset)
        found = [r for r in read_all(log, ReadIsolation.COMMITTED) if r.value is not None]
        consumed = compacted.consumed["read_committed"][topic, partition]
        assert found == [r for r in consumed if r.value is not None], topic
    manager.close()


def survivors(directory: DirtyDirectory, topic: str) -> list[Record]:
    return [
        record
        for batches in segments_of(directory, topic).values()
        for batch in batches
        if not batch.header.is_control
        for record in iter_records(batch)
    ]
