"""Producers, transactions and consumers, held against a count of what was written."""

from collections import defaultdict

import pytest
from pyspark.sql import SparkSession

from analytics.analyses import consumers, producers
from broker.groups.record_formats import OffsetKey, decode_key, decode_offset_value
from broker.versioned_records import MalformedRecordError
from tests.integration.test_analyses_inventory import in_milliseconds
from tests.integration.varied_data import DRAINED_END, Varied, hidden_offsets, tables_of, varied
from tests.integration.varied_logs import DAY, MINUTE, MONDAY, WrittenBatch

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Varied:
    return varied(spark, tmp_path_factory.getbasetemp() / "varied")


def test_producers_have_their_epochs_batches_and_records(written: Varied) -> None:
    expected = defaultdict(list)
    for one in written.data:
        if one.producer.producer_id >= 0:
            expected[one.topic, one.producer.producer_id].append(one)
    rows = {
        (row.topic, row.producer_id): row
        for row in producers.producers(written.tables.batches).collect()
    }
    assert rows.keys() == expected.keys()
    for who, batches in expected.items():
        row, epochs = rows[who], {one.producer.producer_epoch for one in batches}
        assert (row.first_epoch, row.last_epoch, row.epochs) == (
            min(epochs),
            max(epochs),
            len(epochs),
        )
        assert row.batches == len(batches)
        assert row.records == sum(len(one.records) for one in batches)
        assert row.bytes == sum(one.bytes for one in batches)
        assert row.is_transactional == any(one.producer.is_transactional for one in batches)


def transactions(batches: list[WrittenBatch]) -> list[tuple[str, int, str, int, int, int]]:
    """Topic, producer, outcome, first and last offset, and records of each."""
    running: dict[tuple[str, int], list[WrittenBatch]] = defaultdict(list)
    found = []

    def end(who: tuple[str, int], outcome: str) -> None:
        if wrote := running.pop(who, []):
            records = [record for one in wrote for record in one.records]
            found.append((*who, outcome, records[0].offset, records[-1].offset, len(records)))

    for one in batches:
        who = (one.topic, one.producer.producer_id)
        if one.marker is not None:
            end(who, "committed" if one.marker == "commit" else "aborted")
        elif one.producer.is_transactional:
            running[who].append(one)
    for who in list(running):
        end(who, "open")
    return found


def test_transactions_end_with_their_markers_or_not_at_all(written: Varied) -> None:
    expected = transactions(written.once)
    rows = written.tables.transactions.collect()
    assert sorted(
        (row.topic, row.producer_id, row.outcome, row.first_offset, row.last_offset, row.records)
        for row in rows
    ) == sorted(expected)
    for row in producers.transaction_summary(written.tables.transactions).collect():
        of_topic = [one for one in expected if one[0] == row.topic]
        outcomes = [one[2] for one in of_topic]
        for outcome in ("committed", "aborted", "open"):
            assert row[outcome] == outcomes.count(outcome)
        records = sum(one[5] for one in of_topic)
        aborted = sum(one[5] for one in of_topic if one[2] == "aborted")
        assert (row.records, row.aborted_share) == (records, pytest.approx(aborted / records))
    [open_one] = [one for one in expected if one[:3] == ("pay", 3, "open")]
    assert open_one[5] == 2


def all_commits(written: Varied) -> list[tuple[str, str, int, int | None, int]]:
    """Every commit that was not aborted and not left open, as a coordinator takes them."""
    topic = consumers.OFFSETS_TOPIC
    batches = [one for one in written.once if one.topic == topic]
    hidden, _ = hidden_offsets(batches)
    undone = {one[1] for one in transactions(batches) if one[2] == "open"}
    found = []
    for one in batches:
        if one.marker is not None or one.producer.producer_id in undone:
            continue
        for record in one.records:
            try:
                key = decode_key(record.key or b"")
            except MalformedRecordError:
                continue
            if isinstance(key, OffsetKey) and (topic, 0, record.offset) not in hidden:
                value = None if record.value is None else decode_offset_value(record.value)
                at = record.timestamp or 0 if value is None else value.commit_timestamp
                offset = None if value is None else value.offset
                found.append((key.group, key.topic, key.partition, offset, at))
    return found


def test_commits_are_all_that_a_coordinator_goes_by(written: Varied) -> None:
    rows = in_milliseconds(written.tables.commits)
    found = [
        (row["group"], row["topic"], row["partition"], row["committed"], row["committed_at_ms"])
        for row in sorted(rows, key=lambda row: row["log_offset"])
    ]
    assert found == all_commits(written)
    assert ("live", "ticks", 0, 6, MONDAY + 3 * DAY + MINUTE) in found  # behind an open one


def ends(written: Varied) -> dict[tuple[str, int], int]:
    found = {(one.topic, one.partition): one.last_offset + 1 for one in written.once}
    return {**found, ("drained", 0): DRAINED_END}


def test_lag_is_counted_to_the_end_of_each_log(written: Varied) -> None:
    last = {commit[:3]: commit[3] for commit in all_commits(written)}
    expected = {}
    for (group, topic, partition), offset in last.items():
        if offset is not None:
            end = ends(written).get((topic, partition))
            lag = None if end is None else end - offset
            expected[group, topic, partition] = (offset, end, lag)
    found = {
        (row.group, row.topic, row.partition): (row.committed, row.log_end, row.lag)
        for row in written.tables.lags.collect()
    }
    assert found == expected
    assert found["late", "drained", 0] == (480, DRAINED_END, 20)
    assert found["gone", "deleted", 4] == (9, None, None)
    assert ("expired", "ticks", 0) not in found


def test_lag_of_a_topic_is_known_where_it_alone_was_chosen(
    spark: SparkSession, written: Varied
) -> None:
    of_ticks = tables_of(spark, list(written.directories), "ticks")
    found = set(of_ticks.lags.collect())
    assert found == {row for row in written.tables.lags.collect() if row.topic == "ticks"}
    assert {"live", "late"} & {row.group for row in found}
    in_time = set(consumers.lag_over_time(of_ticks.commits, of_ticks.batches).collect())
    whole = consumers.lag_over_time(written.tables.commits, written.tables.batches)
    assert in_time == {row for row in whole.collect() if row.topic == "ticks"}


def test_lag_over_time_is_against_what_had_come_by_then(written: Varied) -> None:
    came: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    newest = 0
    for one in sorted(written.once, key=lambda one: (one.topic, one.partition, one.last_offset)):
        place = (one.topic, one.partition)
        newest = max(one.last_time or 0, newest if came[place] else 0)
        came[place].append((newest, one.last_offset + 1))
    expected = set()
    for group, topic, partition, offset, at in all_commits(written):
        if offset is not None:
            until = [end for moment, end in came[topic, partition] if moment <= at]
            lag = max(max(until) - offset, 0) if until else None
            expected.add((group, topic, partition, at, lag))
    rows = in_milliseconds(consumers.lag_over_time(written.tables.commits, written.tables.batches))
    found = {
        (row["group"], row["topic"], row["partition"], row["at_ms"], row["lag"]) for row in rows
    }
    assert found == expected
    assert ("stuck", "ticks", 0, MONDAY + 31_000, 1) in found
    assert ("live", "ticks", 0, MONDAY + 3 * DAY + MINUTE, 3) in found


def test_groups_that_stand_still_are_stalled_though_they_commit(written: Varied) -> None:
    tables = written.tables
    rows = in_milliseconds(consumers.stalled_groups(tables.lags, tables.batches))
    moment = max(one.last_time or 0 for one in written.once)
    found = {
        (row["group"], row["topic"]): (row["lag"], row["moved_at_ms"], row["silent_seconds"])
        for row in rows
    }
    pay_end = ends(written)["pay", 0]
    assert found == {
        ("stuck", "ticks"): (6, MONDAY + 31_000, (moment - MONDAY - 31_000) / 1000),
        ("paid", "pay"): (pay_end, MONDAY + 15, (moment - MONDAY - 15) / 1000),
    }  # "live" has moved, "marked" is behind a marker alone, "late" has nothing left to read
