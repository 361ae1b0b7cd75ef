"""Shape, keys and time, held against a count of the records that were written."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from math import ceil

import pytest
from pyspark.sql import SparkSession

from analytics.analyses import keys, shape, times
from analytics.analyses.codec_trial import codec_trial
from storage.records.layout import BATCH_HEADER_SIZE
from tests.integration.test_analyses_inventory import in_milliseconds
from tests.integration.varied_data import EMPTY, Varied, varied
from tests.integration.varied_logs import DAY, MONDAY, WrittenRecord

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Varied:
    return varied(spark, tmp_path_factory.getbasetemp() / "varied")


def by_topic(written: Varied) -> dict[str, list[WrittenRecord]]:
    found = defaultdict(list)
    for one in written.committed:
        found[one.topic].append(one)
    return dict(found)


def percentile(values: Iterable[int], share: float) -> int:
    """The least value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def test_sizes_are_those_of_every_committed_record(written: Varied) -> None:
    rows = {row.topic: row for row in shape.record_sizes(written.tables.facts).collect()}
    assert rows.keys() == by_topic(written).keys()
    for topic, records in by_topic(written).items():
        row = rows[topic]
        assert row.records == len(records), topic
        for name, sizes in {
            "key_bytes": [len(one.key or b"") for one in records],
            "value_bytes": [len(one.value or b"") for one in records],
            "record_bytes": [one.size for one in records],
        }.items():
            for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
                assert row[f"{name}_{label}"] == percentile(sizes, share), (topic, name, label)


def test_batches_codecs_and_formats_are_counted_without_markers(written: Varied) -> None:
    codecs: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    formats: dict[tuple[str, int, str | None], list[int]] = defaultdict(lambda: [0, 0, 0])
    sizes = defaultdict(list)
    for one in written.data:
        sizes[one.topic].append((len(one.records), one.bytes))
        for amounts in (
            codecs[one.topic, one.codec],
            formats[one.topic, one.magic, one.timestamp_type],
        ):
            amounts[0] += 1
            amounts[1] += len(one.records)
            amounts[2] += one.bytes
    table = written.tables.batches
    assert {
        (topic, codec): amounts for topic, codec, *amounts in shape.codecs(table).collect()
    } == (codecs)
    assert {
        (topic, magic, kind): amounts
        for topic, magic, kind, *amounts in shape.formats(table).collect()
    } == formats
    for row in shape.batch_sizes(table).collect():
        counts = [count for count, _ in sizes[row.topic]]
        bytes_of = [size for _, size in sizes[row.topic]]
        assert row.batches == len(counts)
        assert row.records_per_batch_mean == pytest.approx(sum(counts) / len(counts))
        assert row.records_per_batch_p50 == percentile(counts, 0.5)
        assert row.batch_bytes_p95 == percentile(bytes_of, 0.95)
        assert (row.records_per_batch_max, row.batch_bytes_max) == (max(counts), max(bytes_of))


def test_ratios_are_of_what_batches_take_uncompressed(written: Varied) -> None:
    trials = {(row.topic, row.codec): row for row in codec_trial(written.tables.batches).collect()}
    stored = {topic: 0 for topic, _ in trials}
    count = dict.fromkeys(stored, 0)
    for one in written.data:
        if one.topic in stored and one.magic == 2:
            stored[one.topic] += one.bytes
            count[one.topic] += 1
    assert stored.keys() == {one.topic for one in written.data} - {"old"}
    for (topic, codec), row in trials.items():
        assert (row.sampled_batches, row.stored_bytes) == (count[topic], stored[topic])
        assert row.raw_bytes == trials[topic, "none"].tried_bytes
        assert row.ratio_now == pytest.approx(row.raw_bytes / stored[topic])
        assert row.saved_share == pytest.approx(1 - row.tried_bytes / stored[topic]), codec
    plain = [one for one in written.data if one.topic == "lone"]
    assert trials["lone", "zstd"].raw_bytes == plain[0].bytes > BATCH_HEADER_SIZE


def test_key_shape_and_heaviest_keys(written: Varied) -> None:
    shapes = {row.topic: row for row in keys.key_shape(written.tables.facts).collect()}
    heaviest = defaultdict(list)
    ranked = keys.heaviest_keys(written.tables.facts, most=4).orderBy("topic", "rank")
    for row in ranked.where("topic != '__consumer_offsets'").collect():
        heaviest[row.topic].append((row.key.encode(), row.records, row.bytes, row.share))
    for topic, records in by_topic(written).items():
        row = shapes[topic]
        keyed = [one for one in records if one.key is not None]
        assert row.records == len(records), topic
        assert row.null_key_share == pytest.approx(1 - len(keyed) / len(records))
        assert row.distinct_keys == pytest.approx(len({one.key for one in keyed}), rel=0.06)
        assert row.tombstones == sum(one.value is None for one in records)
        if topic == "__consumer_offsets":
            continue
        counted = Counter(one.key for one in keyed)
        weight = Counter[bytes | None]()
        for one in keyed:
            weight[one.key] += one.size
        order = sorted(counted, key=lambda key: (-counted[key], -weight[key], key or b""))
        assert heaviest.get(topic, []) == [
            (key, counted[key], weight[key], pytest.approx(counted[key] / len(keyed)))
            for key in order[:4]
        ], topic


def test_skew_counts_the_partitions_that_are_empty(written: Varied) -> None:
    table = keys.partition_skew(written.tables.facts, written.tables.listing)
    rows = {row.topic: row for row in table.collect()}
    assert rows.keys() == by_topic(written).keys()
    for topic, records in by_topic(written).items():
        counts, sizes = Counter[int](), Counter[int]()
        for one in records:
            counts[one.partition] += 1
            sizes[one.partition] += one.size
        partitions = len(counts) + sum(name == topic for name, _ in EMPTY)
        row = rows[topic]
        assert (row.partitions, row.most_records) == (partitions, max(counts.values()))
        assert counts[row.fullest_partition] == row.most_records
        assert row.mean_records == pytest.approx(len(records) / partitions)
        assert row.records_skew == pytest.approx(row.most_records * partitions / len(records))
        total = sum(sizes.values())
        assert row.bytes_skew == pytest.approx(max(sizes.values()) * partitions / total)


def test_compaction_keeps_the_last_of_each_key_and_none_without_one(written: Varied) -> None:
    found = keys.compaction_gain(written.tables.facts, written.tables.batches)
    rows = {row.topic: row for row in found.collect()}
    assert rows.keys() == by_topic(written).keys()
    for topic, records in by_topic(written).items():
        last = {(one.partition, one.key): one for one in records if one.key is not None}
        kept_bytes, all_bytes = (sum(one.size for one in some) for some in (last.values(), records))
        stored = sum(one.bytes for one in written.data if one.topic == topic)
        row = rows[topic]
        assert row.records == len(records)
        assert row.removable_records == len(records) - len(last), topic
        assert row.keyless_records == sum(one.key is None for one in records)
        assert row.removable_share == pytest.approx(1 - kept_bytes / all_bytes)
        assert row.removable_bytes == pytest.approx(row.removable_share * stored, abs=1)
        assert (row.keys, row.deleted_keys) == (
            len(last),
            sum(one.value is None for one in last.values()),
        )


def test_lateness_is_against_the_newest_record_appended_before(written: Varied) -> None:
    rows = {row.topic: row for row in times.lateness(written.tables.facts).collect()}
    for topic, records in by_topic(written).items():
        late, timed, newest = [], 0, dict[int, int]()
        for one in records:
            if one.timestamp is None:
                continue
            timed += 1
            before = newest.get(one.partition, one.timestamp)
            if one.timestamp < before:
                late.append(before - one.timestamp)
            newest[one.partition] = max(before, one.timestamp)
        row = rows[topic]
        assert (row.records, row.out_of_order) == (timed, len(late)), topic
        assert row.out_of_order_share == pytest.approx(len(late) / timed)
        if late:
            assert row.late_seconds_p50 == pytest.approx(percentile(late, 0.5) / 1000)
            assert row.late_seconds_p99 == pytest.approx(percentile(late, 0.99) / 1000)
            assert row.late_seconds_max == pytest.approx(max(late) / 1000)
        else:
            assert row.late_seconds_max is None
    assert rows["orders"].out_of_order > 20
    assert rows["stamped"].out_of_order == 0  # the broker's clock, not the producers'


def test_gaps_are_the_pauses_of_days(written: Varied) -> None:
    rows = in_milliseconds(times.traffic_gaps(written.tables.batches))
    [gap] = [row for row in rows if row["topic"] == "ticks"]
    assert (gap["gap_start_ms"], gap["gap_end_ms"]) == (MONDAY + 40_000, MONDAY + 3 * DAY)
    assert gap["seconds"] == 3 * DAY / 1000 - 40
    assert gap["rank"] == 1


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_rhythm_is_by_weekday_and_hour_of_utc_in_any_session(
    spark: SparkSession, written: Varied, zone: str
) -> None:
    expected = Counter[tuple[str, int, int]]()
    for one in written.committed:
        if one.timestamp is not None:
            at = datetime.fromtimestamp(one.timestamp / 1000, UTC)
            expected[one.topic, at.weekday(), at.hour] += 1
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = times.weekly_rhythm(written.tables.facts).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert {(row.topic, row.weekday, row.hour): row.records for row in rows} == expected
