"""The tables that analyses are made from, each made once and by the first that asks."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Final

from analytics.analyses import consumers, inventory, producers
from analytics.analyses.facts import record_facts
from analytics.analyses.replicas import each_partition_once
from analytics.logs.partitions import PartitionLog
from analytics.source.sources import BATCHES, RECORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Logs may be damaged, and those of a running broker lose segments while they are read.
READ_WHAT_IS_LEFT: Final = {"onDamage": "skip", "failOnDataLoss": "false"}


class Tables:
    """What analyses are made from. What several of them use is made by the first that asks, and
    kept once it has been read.

    `replicas` are the batches of every replica, `batches` those of each partition once, and
    `everything` those of all topics, where others than all were chosen. Groups are
    known by `commit_logs`, the logs of their commits, also where the partitions are of other
    topics: then only commits to these count.
    """

    def __init__(
        self,
        spark: "SparkSession",
        partitions: Sequence[PartitionLog],
        commit_logs: Sequence[PartitionLog],
        batches: "DataFrame",
        load_records: Callable[[], "DataFrame"],
        free_bytes: Mapping[str, int],
        load_everything: Callable[[], "DataFrame"] | None = None,
    ) -> None:
        self.spark = spark
        self.partitions = partitions
        self._commit_logs = commit_logs
        self.free_bytes = free_bytes
        self.disk_of = disks_of(free_bytes)
        self.replicas = batches
        self._load_records = load_records
        self._load_everything = load_everything
        self._kept: dict[str, DataFrame] = {}
        self._making = RLock()  # analyses are made in several threads

    @property
    def batches(self) -> "DataFrame":
        if not _has_replicas(self.partitions):
            return self.replicas
        return self._keep("batches", lambda: each_partition_once(self.replicas).persist())

    @property
    def everything(self) -> "DataFrame":
        if self._load_everything is None:
            return self.replicas
        load = self._load_everything
        return self._keep("everything", lambda: load().persist())

    @property
    def listing(self) -> "DataFrame":
        return self._keep("listing", lambda: listing(self.spark, self.partitions))

    @property
    def inventory(self) -> "DataFrame":
        return self._keep(
            "inventory", lambda: inventory.partitions(self.replicas, self.listing).persist()
        )

    @property
    def facts(self) -> "DataFrame":
        return self._keep("facts", lambda: record_facts(self._records).persist())

    @property
    def _records(self) -> "DataFrame":
        return self._keep("records", self._load_records)

    @property
    def commits(self) -> "DataFrame":
        return self._keep("commits", lambda: self._commits().persist())

    @property
    def transactions(self) -> "DataFrame":
        return self._keep("transactions", lambda: producers.transactions(self.batches).persist())

    @property
    def lags(self) -> "DataFrame":
        return self._keep("lags", self._lags)

    def _lags(self) -> "DataFrame":
        committed = consumers.committed_offsets(self.commits)
        return consumers.lag_now(committed, self.batches, self.listing)

    def _keep(self, name: str, make: Callable[[], "DataFrame"]) -> "DataFrame":
        with self._making:
            if name not in self._kept:
                self._kept[name] = make()
            return self._kept[name]

    def _commits(self) -> "DataFrame":
        if not self._commit_logs:
            return consumers.commits(self._records.limit(0), self.batches)
        topics = {log.topic for log in self.partitions}
        if consumers.OFFSETS_TOPIC in topics:
            return consumers.commits(self._load_commits(RECORDS), self.batches)
        batches = self._load_commits(BATCHES)
        if _has_replicas(self._commit_logs):
            batches = each_partition_once(batches)
        found = consumers.commits(self._load_commits(RECORDS), batches)
        return found.where(found.topic.isin(*topics))

    def _load_commits(self, table: str) -> "DataFrame":
        reader = self.spark.read.format(table).options(**READ_WHAT_IS_LEFT)
        return reader.load([log.directory for log in self._commit_logs])


def commit_logs(found: Iterable[PartitionLog]) -> list[PartitionLog]:
    """Those that groups keep their offsets in."""
    return [log for log in found if log.topic == consumers.OFFSETS_TOPIC]


def _has_replicas(partitions: Sequence[PartitionLog]) -> bool:
    """Whether a partition is there more than once."""
    return len({(log.topic, log.partition) for log in partitions}) < len(partitions)


def listing(spark: "SparkSession", partitions: Sequence[PartitionLog]) -> "DataFrame":
    """The logs that there are, empty ones included, as the inventory wants them."""
    rows = [
        (
            log.log_dir,
            log.topic,
            log.partition,
            len(log.segments),
            log.start_offset,
            log.segments[-1].base_offset,
        )
        for log in partitions
    ]
    return spark.createDataFrame(rows, inventory.LISTING_SCHEMA)


def disks_of(log_dirs: Iterable[str]) -> dict[str, str]:
    """A name for the disk of each log directory, as far as it can be told."""
    disks = {}
    for log_dir in log_dirs:
        try:
            disks[log_dir] = f"device {os.stat(log_dir).st_dev}"
        except OSError:
            continue
    return disks
