"""Answers that are too long for a report: what is shown of them is still true."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analytics import answers as answering
from analytics.answers import Answer
from analytics.html.page import page
from analytics.html.summary import summary
from analytics.suite import ANALYSES
from tests.integration.test_analyses_odd_logs import commit
from tests.integration.varied_data import tables_of
from tests.integration.varied_logs import DAY, HOUR, MINUTE, MONDAY, LogWriter
from tests.unit.analytics.segments import write_segment

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine

MOST_ROWS = 30
SMALL_TOPICS = [f"a{number:02d}" for number in range(40)]
HOURS = 3 * 168
NOW = datetime(2030, 1, 2, tzinfo=UTC)


def write_logs(directory: Path) -> None:
    logs = [LogWriter(directory, name, 0) for name in SMALL_TOPICS]
    for log in logs:
        log.write([(MONDAY + HOUR, b"k", b"v")])
    large = LogWriter(directory, "t", 0)
    for hour in range(HOURS):
        large.write([(MONDAY + hour * HOUR, b"k", b"v"), (MONDAY + hour * HOUR, b"l", b"v")])
    large.write([(MONDAY + 100_000 * DAY, b"k", b"v")])  # from a clock that was wrong
    commits = LogWriter(directory, "__consumer_offsets", 0)
    for number in range(60):
        commits.write([commit("a", 1, MONDAY + 2 * HOUR + number * MINUTE)])
    commits.write([commit("z", 0, MONDAY + 2 * HOUR)])
    for log in [*logs, large, commits]:
        log.close()
    for name in SMALL_TOPICS:
        write_segment(directory, f"{name}-1", 0, [b"this is no batch"])


@pytest.fixture(scope="module")
def cut(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    folder = tmp_path_factory.mktemp("long")
    write_logs(folder / "logs")
    tables = tables_of(spark, [str(folder / "logs")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "MOST_ROWS", MOST_ROWS)
        found = answering.answers(ANALYSES, tables, folder / "tables")
        answers = {one.name: answer for one, answer in found}
    for name, answer in answers.items():
        assert pq.read_table(folder / "tables" / name).num_rows == answer.total, name
    return answers


def test_the_largest_rows_are_kept(cut: dict[str, Answer]) -> None:
    assert len(cut["topics"].rows) == MOST_ROWS < cut["topics"].total
    assert {row["topic"] for row in cut["topics"].rows[:2]} == {"t", "__consumer_offsets"}
    assert {row["topic"] for row in cut["compaction"].rows[:2]} == {"t", "__consumer_offsets"}


def test_no_partition_is_left_out(cut: dict[str, Answer]) -> None:
    assert len(cut["partitions"].rows) == 2 * len(SMALL_TOPICS) + 2


def test_the_week_is_that_of_all_topics_of_users(cut: dict[str, Answer]) -> None:
    expected = Counter[tuple[int, int]]()
    for hour in range(HOURS):
        expected[hour // 24 % 7, hour % 24] += 2
    expected[0, 1] += len(SMALL_TOPICS)
    expected[100_000 % 7, 0] += 1
    rows = [row for row in cut["rhythm"].digest if row["topic"] == ""]
    assert {(row["weekday"], row["hour"]): row["records"] for row in rows} == expected
    assert [row["records"] for row in cut["rhythm"].digest if row["topic"] == "__"] == [61]


def test_traffic_is_that_of_the_largest_topics_in_few_steps(cut: dict[str, Answer]) -> None:
    rows = cut["traffic"].digest
    assert len({row["topic"] for row in rows}) == 8
    large = sorted(
        (row["hour"], row["hours"], row["records"]) for row in rows if row["topic"] == "t"
    )
    assert large[0] == (datetime(2023, 11, 13), 2, 2)
    assert {records for *_, records in large} == {2}
    assert len(large) == HOURS // 2


def test_lag_is_that_of_the_groups_furthest_behind(cut: dict[str, Answer]) -> None:
    assert cut["lag_over_time"].total == 61
    at_first = MONDAY // 1000 + 2 * 3600
    behind = 6  # three hours of two records each
    last = {row["group"]: row["at"] for row in cut["lag_over_time"].digest}
    assert last["z"] == datetime.fromtimestamp(at_first, UTC).replace(tzinfo=None)
    assert max(row["lag"] for row in cut["lag_over_time"].digest) == behind
    assert len(cut["lag_over_time"].digest) == 61  # they are few enough


def test_sentences_count_all(cut: dict[str, Answer]) -> None:
    digests = {name: answer.digest for name, answer in cut.items()}
    [faults, stalled, holdings, *_] = (one.text for one in summary(digests))
    records = len(SMALL_TOPICS) + 2 * HOURS + 1 + 61
    assert holdings.startswith(f"42 topics with 82 partitions hold {records:,} records")
    assert stalled == "Stalled, 2,017 records behind: a, z."
    total = cut["faults"].total
    assert len(cut["faults"].rows) == MOST_ROWS < total
    assert faults.startswith(f"The audit found {total} faults: ")


def test_the_report_of_them_is_drawn(cut: dict[str, Answer]) -> None:
    text = page(cut, ["/logs"], NOW)
    assert f"{cut['topics'].total - MOST_ROWS:,} more rows. These have the most bytes." in text
    assert text.count("<svg") == 6
