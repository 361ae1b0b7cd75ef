"""The Spark sources in a real Spark: against what a consumer reads from a real broker."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, Row, SparkSession

from tests.fidelity.fixture_logs import RELEASES, data_directory, fixture_logs
from tests.support.broker import BrokerProcess, running_broker
from tests.unit.analytics.reading import as_consumed
from tests.unit.analytics.segments import START_MS, batch, write_segment

pytestmark = pytest.mark.timeout(600)  # Spark's start is heavy on a busy machine

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def load(spark: SparkSession, directory: Path, **options: str) -> DataFrame:
    return spark.read.format("barnabas").options(**options).load(str(directory))


def rows_by_partition(rows: list[Row]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in sorted(rows, key=lambda row: (row.topic, row.partition, row.offset)):
        found.setdefault(f"{row.topic}-{row.partition}", []).append(as_consumed(row.asDict(True)))
    return found


def test_columns_are_those_of_sparks_kafka_source(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0, [batch(0, 1)])
    without = "key binary, value binary, topic string, partition int, offset bigint,"
    without += " timestamp timestamp, timestampType int"
    headers = ", headers array<struct<key: string, value: binary>>"
    assert load(spark, tmp_path).schema == _schema(spark, without)
    assert load(spark, tmp_path, includeHeaders="true").schema == _schema(spark, without + headers)


def _schema(spark: SparkSession, ddl: str) -> Any:
    return spark.createDataFrame([], ddl).schema


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("release", RELEASES)
def test_kafkas_own_logs_are_read_as_a_consumer_read_them(
    spark: SparkSession, release: str, isolation: str
) -> None:
    options = {"includeHeaders": "true", "isolationLevel": isolation}
    rows = load(spark, data_directory(release), **options).collect()
    expected = {
        log.name: records
        for log in fixture_logs()
        if log.release == release and (records := log.consumed(isolation))
    }
    assert rows_by_partition(rows) == expected


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data = tmp_path_factory.mktemp("data")
    with running_broker(data, {"num.partitions": "2", "log.segment.bytes": "60000"}) as broker:
        yield broker


@contextmanager
def producing(
    broker: BrokerProcess, topic: str, codec: str, has_headers: bool
) -> Iterator[threading.Event]:
    """Records of many kinds, sent all the time in a thread; the event says that some arrived."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "compression.type": codec,
            "linger.ms": 2,
            "batch.size": 16384,  # a broker refuses one that is larger than a segment
        }
    )
    ended, begun = threading.Event(), threading.Event()
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    def headers(number: int) -> list[tuple[str, str | bytes | None]] | None:
        return [("n", b"%d" % number), ("none", None)] if number % 3 == 0 else None

    def send() -> None:
        for number in range(200_000):
            if ended.is_set():
                break
            producer.produce(
                topic,
                None if number % 11 == 0 else b"v%d " % number * (number % 40),
                None if number % 5 == 0 else b"key%d" % (number % 17),
                headers=headers(number) if has_headers else None,
                timestamp=START_MS + number,
                on_delivery=delivered,
            )
            if number % 20 == 0:
                producer.poll(0)
                time.sleep(0.002)
            if number == 2000:
                producer.flush(60)
                begun.set()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield begun
    finally:
        ended.set()
        sender.join()
        assert producer.flush(60) == 0
        assert failures == []


def consume(broker: BrokerProcess, topic: str, ends: dict[int, int]) -> dict[str, list[Any]]:
    """What a consumer reads of each partition up to an offset."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
    waiting = {partition for partition, end in ends.items() if end}
    rows: list[Row] = []
    while waiting:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if offset < ends[partition]:
            rows.append(_as_row(message))
        if offset >= ends[partition] - 1:
            waiting.discard(partition)
    consumer.close()
    return rows_by_partition(rows)


def _as_row(message: Any) -> Row:
    kind, timestamp = message.timestamp()
    timestamp = timestamp if kind != TIMESTAMP_NOT_AVAILABLE else -1
    headers = message.headers()
    return Row(
        key=message.key(),
        value=message.value(),
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp),
        timestampType=kind - 1,
        headers=[Row(key=key, value=value) for key, value in headers] if headers else None,
    )


@pytest.mark.parametrize(
    ("codec", "format_version"),
    [*((codec, "2.5") for codec in CODECS), ("gzip", "0.10.0"), ("snappy", "0.9.0")],
)
def test_rows_are_what_a_consumer_reads_while_the_broker_is_writing(
    spark: SparkSession, broker: BrokerProcess, codec: str, format_version: str
) -> None:
    topic = f"live-{codec}-{format_version}"
    settings = {"message.format.version": format_version}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1, config=settings)])[topic].result(60)
    # Old formats have no headers, and a broker refuses them there.
    with producing(broker, topic, codec, has_headers=format_version == "2.5") as begun:
        assert begun.wait(120)
        rows = load(spark, broker.data, subscribe=topic, includeHeaders="true").collect()
    found = rows_by_partition(rows)
    assert sum(map(len, found.values())) >= 2000
    ends = {int(name.rpartition("-")[2]): records[-1].offset + 1 for name, records in found.items()}
    assert found == consume(broker, topic, ends)


@pytest.fixture(params=[False, True], ids=["pushdown off", "pushdown on"])
def pushdown(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[bool]:
    spark.conf.set(PUSHDOWN, str(request.param).lower())
    yield request.param
    spark.conf.unset(PUSHDOWN)


@pytest.mark.parametrize("narrows", ["false", "true"])
@pytest.mark.usefixtures("pushdown")
def test_filters_find_the_same_rows_whether_they_narrow_what_is_read_or_not(
    spark: SparkSession, tmp_path: Path, narrows: str
) -> None:
    for topic in ("a-0", "a-1", "b-0"):
        write_segment(tmp_path, topic, 0, [batch(n * 10, 10) for n in range(10)])
    table = load(spark, tmp_path, pushDownPredicate=narrows)
    chosen = table.where("topic = 'a' AND partition = 1 AND offset BETWEEN 38 AND 41")
    assert [row.offset for row in chosen.collect()] == [38, 39, 40, 41]
    late = table.where(f"topic = 'b' AND timestamp >= timestamp_millis({START_MS + 97})")
    assert [row.offset for row in late.collect()] == [97, 98, 99]
    reader = spark.read.format("barnabas-batches").option("pushDownPredicate", narrows)
    assert reader.load(str(tmp_path)).where("topic = 'b' AND last_offset > 80").count() == 2
    assert table.where("topic = 'none of them'").count() == 0


@pytest.mark.usefixtures("pushdown")
def test_one_table_answers_many_queries_and_takes_part_in_one_query_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Where Spark hands filters on, it keeps what they left of a table for all later queries of
    it, and for its other parts in the same query: rows would be missing without a word."""
    for base in range(0, 100, 10):
        write_segment(tmp_path, "t-0", base, [batch(base, 10)])
    table = load(spark, tmp_path)
    late, early = table.where("offset >= 50"), table.where("offset < 10")
    assert (late.count(), table.count(), early.count(), table.count()) == (50, 100, 10, 100)
    assert late.union(early).count() == 60
    assert late.union(table).count() == 150
    batches = spark.read.format("barnabas-batches").load(str(tmp_path))
    assert batches.where("base_offset >= 50").union(batches).count() == 15


def test_filters_that_are_pushed_down_keep_other_segments_from_being_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    damaged = batch(0, 10)
    damaged[-1] ^= 0xFF
    write_segment(tmp_path, "t-0", 0, [damaged])
    write_segment(tmp_path, "t-0", 10, [batch(10, 10)])
    spark.conf.set(PUSHDOWN, "true")
    try:
        table = load(spark, tmp_path, pushDownPredicate="true")
        assert table.where("offset >= 10").count() == 10
    finally:
        spark.conf.unset(PUSHDOWN)


def test_damage_is_rows_of_the_problems_table(spark: SparkSession, tmp_path: Path) -> None:
    damaged = batch(3, 3)
    damaged[-1] ^= 0xFF
    file = write_segment(tmp_path, "t-0", 0, [batch(0, 3), damaged, batch(6, 3)[:-1]])
    problems = spark.read.format("barnabas-problems").load(str(tmp_path)).collect()
    size = len(batch(0, 3))
    assert [(row.kind, row.base_offset, row.position, row.segment) for row in problems] == [
        ("wrong crc", 3, size, str(file)),
        ("torn tail", None, 2 * size, str(file)),
    ]
    with pytest.raises(Exception, match=r"position \d+: wrong crc"):
        load(spark, tmp_path).collect()
    assert load(spark, tmp_path, onDamage="skip").count() == 3


def test_whether_checksums_are_right_is_told_on_request(
    spark: SparkSession, tmp_path: Path
) -> None:
    damaged = batch(3, 3)
    damaged[-1] ^= 0xFF
    write_segment(tmp_path, "t-0", 0, [batch(0, 3), damaged])
    reader = spark.read.format("barnabas-batches")
    assert [row.crc_ok for row in reader.load(str(tmp_path)).collect()] == [None, None]
    checked = reader.option("checkCrc", "true").load(str(tmp_path)).collect()
    assert [row.crc_ok for row in checked] == [True, False]


def test_several_directories_and_a_uri_may_be_named(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path / "one", "a-0", 0, [batch(0, 2)])
    write_segment(tmp_path / "two", "b-0", 0, [batch(0, 3)])
    both = [str(tmp_path / "one"), f"file://{tmp_path}/two"]
    assert spark.read.format("barnabas").load(both).count() == 5


def test_a_query_that_reads_nothing_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path, "t-0", 0)
    assert load(spark, tmp_path).count() == 0
    assert spark.read.format("barnabas-batches").load(str(tmp_path)).count() == 0


def run_stream(spark: SparkSession, logs: Path, target: Path, **options: str) -> list[int]:
    """Run a query until it has read all that is there; the number of rows of each batch."""
    query = (
        spark.readStream.format("barnabas")
        .options(startingOffsets="earliest", **options)
        .load(str(logs))
        .selectExpr("topic", "partition", "offset")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(target / "checkpoint"))
        .option("path", str(target / "rows"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(300)
        if (error := query.exception()) is not None:
            raise error
        return [progress["numInputRows"] for progress in query.recentProgress]
    finally:
        query.stop()


def test_a_stream_goes_on_where_its_checkpoint_says(spark: SparkSession, tmp_path: Path) -> None:
    logs, target = tmp_path / "logs", tmp_path / "out"
    file = write_segment(logs, "t-0", 0, [batch(n * 10, 10) for n in range(10)])
    sizes = run_stream(spark, logs, target, maxOffsetsPerTrigger="40")
    assert [size for size in sizes if size] == [40, 40, 20]
    with file.open("ab") as opened:
        opened.write(batch(100, 7))
    write_segment(logs, "t-1", 0, [batch(0, 5)])
    assert sum(run_stream(spark, logs, target)) == 12
    assert sum(run_stream(spark, logs, target)) == 0
    rows = spark.read.parquet(str(target / "rows")).collect()
    expected = [("t", 0, n) for n in range(107)] + [("t", 1, n) for n in range(5)]
    assert sorted(map(tuple, rows)) == expected
