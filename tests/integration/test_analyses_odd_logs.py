"""The analyses on logs in which a clock, a client or a disk has left something odd."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analytics import command
from analytics.analyses import consumers, keys
from analytics.analyses.times import traffic_gaps
from analytics.answers import answers
from analytics.logs.partitions import find_all
from analytics.source.sources import BATCHES, RECORDS
from analytics.suite import ANALYSES
from analytics.tables import Tables
from broker.groups.record_formats import (
    OffsetKey,
    OffsetValue,
    encode_offset_key,
    encode_offset_value,
)
from storage.records.builder import ProducerInfo
from storage.records.layout import MAGIC_1, MAGIC_2, Codec
from tests.integration.test_analyses_inventory import in_milliseconds
from tests.integration.varied_data import tables_of
from tests.integration.varied_logs import HOUR, MINUTE, MONDAY, LogWriter, Said

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine

MICROSECONDS = MONDAY * 1000
NANOSECONDS = MICROSECONDS * 1000
RECORD_COUNT_AT = 57  # in a batch
IN_1970 = 1_000_000
IN_2100 = 4_102_444_800_000


def commit(group: str, offset: int, at: int, record_at: int = MONDAY) -> Said:
    key = encode_offset_key(OffsetKey(group=group, topic="t", partition=0))
    value = OffsetValue(offset=offset, metadata="", commit_timestamp=at)
    return record_at, key, encode_offset_value(value)


def everything_of(tables: Tables) -> dict[str, list[dict[str, Any]]]:
    return {one.name: answer.rows for one, answer in answers(ANALYSES, tables, None)}


@pytest.fixture
def with_odd_commits(spark: SparkSession, tmp_path: Path) -> Tables:
    topic = LogWriter(tmp_path, "t", 0)
    topic.write([(MONDAY + number * MINUTE, b"k", b"v") for number in range(10)])
    commits = LogWriter(tmp_path, consumers.OFFSETS_TOPIC, 0)
    commits.write([commit("in nanoseconds", 5, NANOSECONDS)])
    commits.write([commit("in microseconds", 5, MICROSECONDS)])
    commits.write([commit("timeless", 5, -1, record_at=MICROSECONDS)])
    commits.write([commit("left", 5, MONDAY), commit("left", -1, MONDAY + 1)])
    commits.write([commit("far below", -(1 << 63), MONDAY)])
    commits.write([commit("far ahead", (1 << 63) - 1, MONDAY)])
    commits.write([commit("sound", 5, MONDAY)])
    for one in (topic, commits):
        one.close()
    return tables_of(spark, [str(tmp_path)])


def test_commits_with_odd_numbers_neither_end_the_run_nor_hide_others(
    with_odd_commits: Tables,
) -> None:
    found = everything_of(with_odd_commits)
    monday = datetime(2023, 11, 13)
    assert {row["group"]: (row["lag"], row["committed_at"]) for row in found["lag"]} == {
        "in nanoseconds": (5, monday),  # of the record
        "in microseconds": (5, monday),
        "timeless": (5, None),
        "far ahead": (0, monday),
        "sound": (5, monday),
    }
    assert len(found["lag_over_time"]) == 6


def test_records_dated_anywhere_end_no_analysis(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path, "t", 0)
    for at in (MONDAY, MICROSECONDS, NANOSECONDS, -1, (1 << 63) - 1, IN_1970, MONDAY + 5):
        log.write([(at, b"k", b"v")])
    log.close()
    found = everything_of(tables_of(spark, [str(tmp_path)]))
    assert [row["records"] for row in found["topics"]] == [7]


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_a_segment_that_retention_deletes_meanwhile_ends_no_run(
    small: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, commits = LogWriter(tmp_path, "t", 0), LogWriter(tmp_path, consumers.OFFSETS_TOPIC, 0)
    for number in range(3):
        topic.write([(MONDAY + number, b"k", b"v")])
        commits.write([commit("g", number, MONDAY + number)])
        for log in (topic, commits):
            log.roll()
    for log in (topic, commits):
        log.close()
    monkeypatch.setattr(command, "_SMALL_BYTES", small)
    request = command.Request([str(tmp_path)], topics=("t",))
    tables = command._tables(spark, request, find_all([str(tmp_path)]), analyses=2)
    records = tables._records
    read = [tables.replicas, records, *map(tables._load_commits, (BATCHES, RECORDS))]
    assert [table.count() for table in read] == [3] * 4  # from here on Spark knows the segments
    for name in ("t-0", f"{consumers.OFFSETS_TOPIC}-0"):
        (tmp_path / name / f"{0:020d}.log").unlink()
    assert {table.count() for table in read} <= {2, 3}
    assert tables.commits.count() == 2


def test_a_flipped_bit_in_a_header_makes_no_records(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path, "t", 0)
    for start in (0, 10):
        said = [(MONDAY + start + number, b"k", b"v") for number in range(10)]
        log.write(said, producer=ProducerInfo(7, 0, start, is_transactional=True))
    log.close()
    segment = tmp_path / "t-0" / f"{0:020d}.log"
    damaged = bytearray(segment.read_bytes())
    damaged[RECORD_COUNT_AT] ^= 0x40
    segment.write_bytes(damaged)
    found = everything_of(tables_of(spark, [str(tmp_path)]))
    counting = ("topics", "partitions", "traffic", "codecs", "formats", "producers")
    assert {sum(row["records"] for row in found[name]) for name in counting} == {20}
    assert found["transactions"][0]["records"] == found["open_transactions"][0]["records"] == 20
    assert found["batch_sizes"][0]["records_per_batch_max"] == 10


def test_only_keys_of_plain_text_are_shown_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path, "t", 0)
    log.write([(MONDAY, key, b"v") for key in (b"plain", b"line\n", b"next\x85", b"", b"\xff")])
    log.close()
    rows = keys.heaviest_keys(tables_of(spark, [str(tmp_path)]).facts).collect()
    assert {row.key for row in rows} == {"plain", "0x6C696E650A", "0x6E65787485", "", "0xFF"}


def test_what_compaction_would_free_is_counted_as_it_is_stored(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = LogWriter(tmp_path, "t", 0)
    log.write([(MONDAY, b"k", bytes(10_000)) for _ in range(10)], Codec.ZSTD)
    log.close()
    tables = tables_of(spark, [str(tmp_path)])
    [row] = keys.compaction_gain(tables.facts, tables.batches).collect()
    assert row.removable_share == pytest.approx(0.9)
    assert row.removable_bytes < (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size


def test_a_chosen_topic_is_judged_by_the_time_and_the_disk_of_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Else a group is never stalled where nothing is written, and a disk never full."""
    topic, busy = LogWriter(tmp_path, "t", 0), LogWriter(tmp_path, "busy", 0)
    commits = LogWriter(tmp_path, consumers.OFFSETS_TOPIC, 0)
    topic.write([(MONDAY + number, b"k", b"v") for number in range(10)])
    for hour in range(72):
        busy.write([(MONDAY + hour * HOUR, b"k", b"v")])
    commits.write([commit("g", 5, MONDAY + MINUTE)])
    for log in (topic, busy, commits):
        log.close()

    def asked(*topics: str) -> list[list[dict[str, Any]]]:
        request = command.Request([str(tmp_path)], topics=topics, disk_free=1000)
        tables = command._tables(spark, request, find_all([str(tmp_path)]), analyses=2)
        chosen = [one for one in ANALYSES if one.name in ("disks", "stalled")]
        return [answer.rows for _, answer in answers(chosen, tables, None)]

    [disk], [stalled] = asked("t")
    assert [[disk], [stalled]] == asked()
    assert (stalled["group"], stalled["lag"]) == ("g", 5)
    assert disk["free_bytes"] == 1000


@pytest.mark.parametrize("magic", [MAGIC_1, MAGIC_2])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_a_pause_within_a_batch_is_a_gap(
    spark: SparkSession, tmp_path: Path, magic: int, zone: str
) -> None:
    pause = (MONDAY + 11 * MINUTE, MONDAY + 5 * HOUR)
    times = [MONDAY + 6 * MINUTE * number // 3 for number in range(6)] + [*pause]
    times += [pause[1] + 2 * MINUTE * number for number in range(1, 6)]
    log = LogWriter(tmp_path, "t", 0)
    log.write([(at, b"k", b"v") for at in times[:3]], Codec.GZIP, magic=magic)
    log.write([(at, b"k", b"v") for at in times[3:9]], Codec.GZIP, magic=magic)
    log.write([(at, b"k", b"v") for at in times[9:]], Codec.GZIP, magic=magic)
    log.close()
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = in_milliseconds(traffic_gaps(tables_of(spark, [str(tmp_path)]).batches))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [(row["gap_start_ms"], row["gap_end_ms"]) for row in rows] == [pause]


def test_a_clock_that_was_wrong_changes_neither_rates_nor_gaps(
    spark: SparkSession, tmp_path: Path
) -> None:
    sound = [MONDAY + number * MINUTE // 2 for number in range(121)]
    sound[60:] = [at + 5 * HOUR for at in sound[60:]]
    log = LogWriter(tmp_path, "t", 0)
    for at in [*sound[:50], IN_1970, IN_2100, *sound[50:]]:
        log.write([(at, b"k", b"v")])
    old = LogWriter(tmp_path, "old", 0)
    for at in (0, HOUR):
        old.write([(at, b"k", b"v")])
    for one in (log, old):
        one.close()
    found = everything_of(tables_of(spark, [str(tmp_path)]))
    for name in ("topics", "partitions"):
        [old_row, row] = found[name]
        assert row["records_per_hour"] == pytest.approx(123 / 6)
        assert row["last_timestamp"] == datetime(2100, 1, 1)
        assert old_row["records_per_hour"] == 2  # there is no better clock
    [gap] = [row["seconds"] for row in found["gaps"] if row["topic"] == "t"]
    assert gap == 5 * HOUR / 1000 + 30
