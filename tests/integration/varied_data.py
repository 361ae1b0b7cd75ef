"""The one data set on which every analysis is held against a count of its own."""

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from analytics.logs.partitions import find_all
from analytics.source.sources import BATCHES, RECORDS
from analytics.tables import Tables, commit_logs
from broker.groups.record_formats import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_offset_key,
    encode_offset_value,
)
from storage.records.builder import ProducerInfo
from storage.records.control import ControlType
from storage.records.layout import Codec
from tests.integration.varied_logs import (
    DAY,
    HOUR,
    MINUTE,
    MONDAY,
    LogWriter,
    Said,
    WrittenBatch,
    WrittenRecord,
    old_messages,
)

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT
TRIMMED_AT = 7  # the log start of topic "trimmed"
EMPTY = (("orders", 2), ("drained", 0))
DRAINED_END = 500


@dataclass
class Varied:
    """What was written, and the tables that Spark makes of it."""

    batches: list[WrittenBatch]
    tables: Tables
    directories: tuple[str, str]

    @property
    def once(self) -> list[WrittenBatch]:
        """Each partition once: the second directory holds a replica that lags behind."""
        return [one for one in self.batches if one.log_dir == self.directories[0]]

    @property
    def data(self) -> list[WrittenBatch]:
        return [one for one in self.once if one.marker is None]

    @property
    def committed(self) -> list[WrittenRecord]:
        """What a reader of committed records sees, by the rules of Kafka: nothing aborted, and
        nothing from the first open transaction on; nor what lies below the log start."""
        hidden, ends = hidden_offsets(self.once)
        return [
            record
            for one in self.data
            for record in one.records
            if (one.topic, one.partition, record.offset) not in hidden
            and record.offset < ends.get((one.topic, one.partition), 1 << 62)
            and not (one.topic == "trimmed" and record.offset < TRIMMED_AT)
        ]

    def records_of(self, topic: str) -> list[WrittenRecord]:
        return [one for one in self.committed if one.topic == topic]


Place = tuple[str, int, int]


def hidden_offsets(
    batches: list[WrittenBatch],
) -> tuple[set[Place], dict[tuple[str, int], int]]:
    """The places of aborted records, and where the first open transaction begins."""
    hidden: set[Place] = set()
    running: dict[tuple[str, int, int], list[WrittenRecord]] = {}
    for one in batches:
        who = (one.topic, one.partition, one.producer.producer_id)
        if one.marker is None and one.producer.is_transactional:
            running.setdefault(who, []).extend(one.records)
        elif one.marker is not None:
            ended = running.pop(who, [])
            if one.marker == "abort":
                hidden |= {(one.topic, one.partition, record.offset) for record in ended}
    ends: dict[tuple[str, int], int] = {}
    for (topic, partition, _), records in running.items():
        first = records[0].offset
        ends[topic, partition] = min(first, ends.get((topic, partition), first))
    return hidden, ends


def _orders(log: LogWriter, chance: random.Random) -> None:
    """Every codec, keys of very different weight, records without key or value, late ones."""
    codecs = list(Codec)
    now = MONDAY + 9 * HOUR
    for number in range(25):
        said: list[Said] = []
        for _ in range(chance.randint(1, 12)):
            now += chance.choice((5, 900, 20_000))
            late = chance.choice((0, 0, 0, 0, 90_000, HOUR))
            key = b"key-%d" % int(chance.expovariate(0.3)) if chance.random() > 0.2 else None
            value = bytes(chance.choices(b"abc", k=chance.randint(0, 300)))
            said.append((now - late, key, None if key and chance.random() < 0.1 else value))
        log.write(said, codecs[number % len(codecs)])
        if number % 10 == 9:
            log.roll()


def _payments(log: LogWriter) -> None:
    """Producer 1 in two epochs, interleaved with producer 2; number 3 never ends."""

    def said(count: int, at: int) -> list[Said]:
        return [(MONDAY + at + one, b"p%d" % one, b"x" * 40) for one in range(count)]

    first, fenced = ProducerInfo(1, 0, 0, True), ProducerInfo(1, 1, 0, True)
    second, third = ProducerInfo(2, 0, 0, True), ProducerInfo(3, 5, 0, True)
    log.write(said(4, 0), producer=first)
    log.write(said(3, 10), producer=second)
    log.write(said(2, 20), producer=first)
    log.end(first, COMMIT, MONDAY + 30)
    log.end(second, ABORT, MONDAY + 40)
    log.end(ProducerInfo(77, 0, 0, True), COMMIT, MONDAY + 45)  # wrote to other partitions
    log.write(said(5, 50), producer=first)
    log.end(fenced, ABORT, MONDAY + 60)  # by the coordinator, for a new epoch
    log.roll()
    log.write(said(6, 70), producer=fenced)
    log.write(said(1, 80), producer=ProducerInfo(9, 0, 0))  # idempotent, and no more
    log.end(fenced, COMMIT, MONDAY + 90)
    log.write(said(2, 100), producer=third)
    log.write(said(3, 110), producer=ProducerInfo(9, 0, 1))


def _commit(group: str, topic: str, partition: int, offset: int | None, at: int) -> Said:
    key = encode_offset_key(OffsetKey(group=group, topic=topic, partition=partition))
    if offset is None:
        return MONDAY + at, key, None
    value = OffsetValue(offset=offset, metadata=f"m{offset}", commit_timestamp=MONDAY + at)
    return MONDAY + at, key, encode_offset_value(value)


def _commits(log: LogWriter) -> None:
    """Groups that move, stand still while they commit, left, expired, or read what is gone."""
    hanging, aborted = ProducerInfo(20, 0, 0, True), ProducerInfo(21, 0, 0, True)
    log.write([(MONDAY, encode_group_key(GroupKey(group="live")), b"\0\0"), (MONDAY, b"\0", b"")])
    log.write([_commit("live", "ticks", 0, 2, 25_000), _commit("stuck", "ticks", 0, 3, 31_000)])
    log.write([_commit("gone", "deleted", 4, 9, MINUTE), _commit("late", "drained", 0, 480, 1)])
    log.write([_commit("live", "ticks", 0, 4, 45_000)], producer=aborted)
    log.end(aborted, ABORT, MONDAY + 46_000)
    log.write([_commit("live", "ticks", 0, 5, 50_000)], producer=hanging)
    log.write([_commit("live", "ticks", 0, 6, 3 * DAY + MINUTE)])
    log.write([_commit("stuck", "ticks", 0, 3, 3 * DAY + 2 * MINUTE)])
    log.write([_commit("expired", "ticks", 0, 1, 10_000), _commit("expired", "ticks", 0, None, 9)])
    log.write([_commit("paid", "pay", 0, 0, 15), _commit("marked", "ends", 0, 3, 15)])


def write_all(root: Path) -> list[WrittenBatch]:
    here, there = root / "a", root / "b"
    chance = random.Random(25)
    logs = [LogWriter(here, "orders", number) for number in range(3)]
    _orders(logs[0], chance)
    _orders(logs[1], chance)
    lagging = LogWriter(there, "orders", 0)
    _orders(lagging, random.Random(25))
    lagging.drop_last()
    lone = LogWriter(here, "lone", 0)
    lone.write([(MONDAY, b"k", b"v")])
    stamped = LogWriter(here, "stamped", 0)
    for number in range(4):
        said: list[Said] = [(MONDAY - number * DAY, b"s", b"1"), (MONDAY - DAY, None, b"")]
        stamped.write(said, append_time=MONDAY + number * MINUTE)
    old = LogWriter(here, "old", 0)
    old_messages(old, [(MONDAY + one * MINUTE, b"o%d" % (one % 4), b"v") for one in range(15)])
    pay = LogWriter(here, "pay", 0)
    _payments(pay)
    ends = LogWriter(here, "ends", 0)
    ends.write(
        [(MONDAY + one, None, b"e") for one in range(3)], producer=ProducerInfo(4, 0, 0, True)
    )
    ends.end(ProducerInfo(4, 0, 0, True), COMMIT, MONDAY + 20)
    kept = LogWriter(here, "kept", 0)
    kept.write([(MONDAY, b"a", b"1"), (MONDAY + 5, b"b", b"2")], offsets=[0, 6])
    kept.skip(20)
    kept.write([(MONDAY + 9, b"a", None)])
    trimmed = LogWriter(here, "trimmed", 0)
    for number in range(4):
        trimmed.write([(MONDAY + number * 10 + one, b"t", b"x") for one in range(5)])
    drained = LogWriter(here, "drained", 0, start=DRAINED_END)
    ticks = LogWriter(here, "ticks", 0)
    for moment in (0, 10, 20, 30, 40):
        ticks.write([(MONDAY + moment * 1000, None, b"tick")])
    for moment in (0, 10, 20):
        ticks.write([(MONDAY + 3 * DAY + moment * 1000, None, b"tick")])
    ticks.write([(MONDAY + 35_000, None, b"late")])
    offsets = LogWriter(here, "__consumer_offsets", 0)
    _commits(offsets)
    logs += [lagging, lone, stamped, old, pay, ends, kept, trimmed, drained, ticks, offsets]
    written = [one for log in logs for one in log.close()]
    (here / "log-start-offset-checkpoint").write_text(f"0\n1\ntrimmed 0 {TRIMMED_AT}\n")
    return written


def tables_of(spark: SparkSession, directories: list[str], *topics: str) -> Tables:
    """The tables that analyses of some topics are made from, or of all."""
    chosen = {"subscribe": ",".join(topics)} if topics else {}

    def load(name: str, isolation: str = "read_uncommitted") -> DataFrame:
        reader = spark.read.format(name).option("isolationLevel", isolation)
        return reader.options(**chosen).load(directories)

    found = find_all(directories)
    return Tables(
        spark=spark,
        partitions=[log for log in found if not topics or log.topic in topics],
        commit_logs=commit_logs(found),
        batches=load(BATCHES),
        load_records=lambda: load(RECORDS, "read_committed"),
        free_bytes={directories[0]: 10**6},
    )


@cache
def varied(spark: SparkSession, root: Path) -> Varied:
    written = write_all(root)
    directories = [str(root / "a"), str(root / "b")]
    return Varied(written, tables_of(spark, directories), (directories[0], directories[1]))
