"""The analyses on logs that Apache Kafka wrote, against what its consumer read from them."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from analytics.analyses import consumers, inventory, keys, producers, shape, times
from analytics.analyses.codec_trial import codec_trial
from analytics.analyses.facts import record_facts
from analytics.audit.audit import audit, audit_here
from analytics.audit.faults import Fault
from analytics.logs.partitions import find_partitions
from analytics.tables import listing
from broker.groups.record_formats import OffsetKey, decode_key, decode_offset_value
from tests.fidelity.consumed import ConsumedRecord
from tests.fidelity.fixture_logs import copy_data, data_directory, fixture_logs

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine

RELEASE = "2.5.1"
Consumed = dict[str, list[ConsumedRecord]]


def consumed(isolation: str) -> Consumed:
    """What a consumer read, by topic; the fixtures' topics have one partition each."""
    logs = [log for log in fixture_logs() if log.release == RELEASE]
    return {log.topic: records for log in logs if (records := log.consumed(isolation))}


@pytest.fixture(scope="module")
def committed() -> Consumed:
    return consumed("read_committed")


@pytest.fixture(scope="module")
def batches(spark: SparkSession) -> DataFrame:
    table = spark.read.format("barnabas-batches").load(str(data_directory(RELEASE)))
    return table.persist()


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> DataFrame:
    reader = spark.read.format("barnabas").option("isolationLevel", "read_committed")
    return reader.load(str(data_directory(RELEASE)))


@pytest.fixture(scope="module")
def facts(records: DataFrame) -> DataFrame:
    return record_facts(records).persist()


@pytest.fixture(scope="module")
def listed(spark: SparkSession) -> DataFrame:
    return listing(spark, find_partitions(data_directory(RELEASE)))


def by_topic(table: DataFrame) -> dict[str, Row]:
    rows = table.collect()
    found = {row.topic: row for row in rows}
    assert len(found) == len(rows)
    return found


def bytes_of(record: ConsumedRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")


def test_inventory_agrees_with_the_logs_themselves(batches: DataFrame, listed: DataFrame) -> None:
    logs = {log.topic: log for log in find_partitions(data_directory(RELEASE))}
    uncommitted = consumed("read_uncommitted")
    held = inventory.partitions(batches, listed)
    rows = by_topic(held)
    assert rows.keys() == logs.keys()
    for topic, row in rows.items():
        assert row.bytes == logs[topic].size
        if row.batches:
            assert row.first_offset >= logs[topic].segments[0].base_offset
    for topic in ("sent-zstd", "transactional", "v1-gzip", "append-time"):
        assert rows[topic].records == len(uncommitted[topic])
        assert rows[topic].segments == len(logs[topic].segments)
    topics = by_topic(inventory.topics(held))
    assert {name: row.records for name, row in topics.items()} == {
        name: row.records for name, row in rows.items()
    }
    in_two_formats = "upgraded"  # some of its records have no timestamp
    timed = [row for row in rows.values() if row.last_timestamp and row.topic != in_two_formats]
    traffic = inventory.traffic(batches).where(f"topic != '{in_two_formats}'").collect()
    assert sum(row.records for row in traffic) == sum(row.records for row in timed)


def test_record_sizes_and_keys_are_those_that_a_consumer_sees(
    facts: DataFrame, committed: Consumed
) -> None:
    sizes = by_topic(shape.record_sizes(facts))
    shapes = by_topic(keys.key_shape(facts))
    assert sizes.keys() == shapes.keys() == committed.keys()
    for topic, read in committed.items():
        assert sizes[topic].records == len(read)
        assert sizes[topic].record_bytes_max == max(map(bytes_of, read))
        assert sizes[topic].key_bytes_max == max(len(one.key or b"") for one in read)
        keyless = sum(one.key is None for one in read)
        assert shapes[topic].null_key_share == pytest.approx(keyless / len(read))
        assert shapes[topic].tombstones == sum(one.value is None for one in read)
        distinct = len({one.key for one in read} - {None})
        assert shapes[topic].distinct_keys == pytest.approx(distinct, rel=0.1, abs=1)


def test_heaviest_keys_are_the_most_frequent_ones(facts: DataFrame, committed: Consumed) -> None:
    found = defaultdict(list)
    for row in keys.heaviest_keys(facts, most=3).orderBy("topic", "rank").collect():
        found[row.topic].append(row.records)
    for topic, read in committed.items():
        counted = Counter(one.key for one in read if one.key is not None)
        assert found.get(topic, []) == [count for _, count in counted.most_common(3)]


def test_compaction_gain_is_what_all_but_the_last_of_each_key_take(
    facts: DataFrame, batches: DataFrame, committed: Consumed
) -> None:
    gains = by_topic(keys.compaction_gain(facts, batches))
    for topic, read in committed.items():
        keyed = [one for one in read if one.key is not None]
        last = {one.key: one for one in keyed}
        assert gains[topic].records == len(read)
        assert gains[topic].removable_records == len(read) - len(last)
        assert gains[topic].keyless_records == len(read) - len(keyed)
        kept = sum(map(bytes_of, last.values()))
        share = 1 - kept / sum(map(bytes_of, read))
        assert gains[topic].removable_share == pytest.approx(share)
        assert gains[topic].deleted_keys == sum(one.value is None for one in last.values())


def test_lateness_is_counted_from_the_newest_record_before(
    facts: DataFrame, committed: Consumed
) -> None:
    rows = by_topic(times.lateness(facts))
    for topic, read in committed.items():
        late, newest = [], -1
        for one in (one for one in read if one.timestamp >= 0):
            if one.timestamp < newest:
                late.append(newest - one.timestamp)
            newest = max(newest, one.timestamp)
        if newest < 0:
            assert topic not in rows
            continue
        assert rows[topic].out_of_order == len(late)
        longest = max(late, default=None)
        assert rows[topic].late_seconds_max == (longest and pytest.approx(longest / 1000))


def test_transactions_account_for_every_record_that_committed_readers_miss(
    batches: DataFrame, committed: Consumed
) -> None:
    found = producers.transactions(batches)
    summary = by_topic(producers.transaction_summary(found))
    uncommitted = consumed("read_uncommitted")
    row = summary["transactional"]
    aborted = found.where("topic = 'transactional' AND outcome = 'aborted'").collect()
    [left_open] = found.where("topic = 'transactional' AND outcome = 'open'").collect()
    decided = [
        one for one in uncommitted["transactional"] if one.offset < left_open.first_offset
    ]  # committed readers wait there
    assert len(committed["transactional"]) == len(decided) - sum(
        one.records for one in aborted if one.first_offset < left_open.first_offset
    )
    assert row.aborted_share == pytest.approx(sum(one.records for one in aborted) / row.records)
    assert row.open == 1
    assert (row.committed, row.aborted) == _markers(batches, "transactional")


def _markers(batches: DataFrame, topic: str) -> tuple[int, int]:
    """The markers that ended a transaction with records: the fixtures have no others."""
    rows = batches.where(f"is_control AND topic = '{topic}'").collect()
    kinds = Counter(row.control_type for row in rows)
    return kinds["commit"], kinds["abort"]


def test_producers_have_their_ids_epochs_and_records(batches: DataFrame) -> None:
    rows = producers.producers(batches).where("topic = 'idempotent'").collect()
    [log] = [log for log in fixture_logs() if (log.release, log.topic) == (RELEASE, "idempotent")]
    assert sum(row.records for row in rows) == len(log.consumed("read_uncommitted"))
    assert all(row.producer_id >= 0 and not row.is_transactional for row in rows)


def test_commits_are_decoded_from_the_offsets_topic(
    records: DataFrame, batches: DataFrame, listed: DataFrame, committed: Consumed
) -> None:
    expected: dict[tuple[str, str, int], Any] = {}
    for one in committed[consumers.OFFSETS_TOPIC]:
        key = decode_key(one.key or b"")
        if isinstance(key, OffsetKey):
            value = None if one.value is None else decode_offset_value(one.value)
            expected[key.group, key.topic, key.partition] = value and (value.offset, value.metadata)
    assert expected
    offsets = consumers.committed_offsets(consumers.commits(records, batches))
    assert {
        (row.group, row.topic, row.partition): (row.committed, row.metadata)
        for row in offsets.collect()
    } == {place: value for place, value in expected.items() if value is not None}
    ends = {log.topic: log for log in find_partitions(data_directory(RELEASE))}
    for row in consumers.lag_now(offsets, batches, listed).collect():
        assert (row.lag is None) == (row.topic not in ends)


def test_codecs_are_tried_on_the_batches_themselves(batches: DataFrame) -> None:
    trial = {(row.topic, row.codec): row for row in codec_trial(batches).collect()}
    for name in ("none", "gzip", "snappy", "lz4", "zstd"):
        # Stored by Kafka's own compressors, tried with ours: alike, if not to the byte.
        assert trial[f"stored-{name}", name].saved_share == pytest.approx(0, abs=0.1)
        assert trial["stored-none", name].ratio_now == 1
    assert trial["stored-none", "zstd"].saved_share > 0.2
    assert trial["stored-zstd", "none"].saved_share < 0
    assert not any(topic.startswith(("v0", "v1")) for topic, _ in trial)


def test_formats_and_codecs_are_told_apart(batches: DataFrame) -> None:
    formats = {(row.topic, row.magic) for row in shape.formats(batches).collect()}
    assert {("v0-gzip", 0), ("v1-gzip", 1), ("sent-gzip", 2)} <= formats
    codecs = {(row.topic, row.codec) for row in shape.codecs(batches).collect()}
    assert {("v0-gzip", "gzip"), ("v1-none", "none"), ("sent-zstd", "zstd")} <= codecs


def test_audit_on_spark_finds_what_it_finds_without(spark: SparkSession, tmp_path: Path) -> None:
    data = copy_data(RELEASE, tmp_path / "data")
    for name in ("sent-zstd-0", "v1-gzip-0"):
        file = min((data / name).glob("*.log"))
        damaged = bytearray(file.read_bytes())
        damaged[100] ^= 1
        file.write_bytes(damaged)
    partitions = find_partitions(data)
    found = [Fault(*row) for row in audit(spark, partitions, few_bytes=0).collect()]
    assert len(found) == 2
    assert found == [Fault(*row) for row in audit(spark, partitions).collect()]
    assert found == audit_here(partitions)
