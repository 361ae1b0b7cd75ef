"""Which analyses there are, by name, and what each needs: the list that the command runs.

An analysis is a function from the tables to a DataFrame; its name is its Parquet table's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics import digests
from analytics.analyses import (
    codec_trial,
    consumers,
    growth,
    inventory,
    keys,
    producers,
    shape,
    times,
)
from analytics.audit.audit import audit
from analytics.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Analysis:
    """One question, and the order in which its answer is read. Where that is too long, the rows
    of the greatest `weight` are kept, and `digest` makes what charts and sentences need of all."""

    name: str
    section: str
    title: str
    build: Callable[[Tables], "DataFrame"]
    order: tuple[str, ...]
    weight: str | None = None
    digest: Callable[["DataFrame"], "DataFrame"] | None = None
    is_never_cut: bool = False


ANALYSES: Final = (
    Analysis(
        "topics",
        "Inventory",
        "What each topic holds, each partition once, and how fast it grows",
        lambda tables: inventory.topics(tables.inventory),
        ("topic",),
        weight="bytes",
    ),
    Analysis(
        "partitions",
        "Inventory",
        "What each replica of each partition holds, and how fast it grows",
        lambda tables: tables.inventory.drop(*inventory.RATED),
        ("topic", "partition", "log_dir"),
        weight="bytes",
        is_never_cut=True,
    ),
    Analysis(
        "traffic",
        "Inventory",
        "Records and bytes by the hour",
        lambda tables: inventory.traffic(tables.batches),
        ("topic", "hour"),
        digest=digests.traffic,
    ),
    Analysis(
        "disks",
        "Inventory",
        "Growth of each log directory, and the day on which its disk is full",
        lambda tables: growth.disk_forecast(tables.everything, tables.free_bytes, tables.disk_of),
        ("log_dir",),
    ),
    Analysis(
        "record_sizes",
        "Shape",
        "Sizes of keys, values and records that are committed",
        lambda tables: shape.record_sizes(tables.facts),
        ("topic",),
        weight="records",
    ),
    Analysis(
        "batch_sizes",
        "Shape",
        "Sizes of batches, and records per batch",
        lambda tables: shape.batch_sizes(tables.batches),
        ("topic",),
        weight="batches",
    ),
    Analysis(
        "codecs",
        "Shape",
        "Codecs in use",
        lambda tables: shape.codecs(tables.batches),
        ("topic", "codec"),
        weight="bytes",
    ),
    Analysis(
        "codec_trial",
        "Shape",
        "What each codec makes of a sample of the batches",
        lambda tables: codec_trial.codec_trial(tables.batches),
        ("topic", "codec"),
        weight="stored_bytes",
    ),
    Analysis(
        "formats",
        "Shape",
        "Message formats and kinds of timestamps in use",
        lambda tables: shape.formats(tables.batches),
        ("topic", "magic"),
        weight="bytes",
    ),
    Analysis(
        "keys",
        "Keys",
        "Keys of the committed records; how many differ is an estimate",
        lambda tables: keys.key_shape(tables.facts),
        ("topic",),
        weight="records",
    ),
    Analysis(
        "heaviest_keys",
        "Keys",
        "The keys with the most records",
        lambda tables: keys.heaviest_keys(tables.facts),
        ("topic", "rank"),
        weight="records",
    ),
    Analysis(
        "skew",
        "Keys",
        "The fullest partition of each topic against the mean",
        lambda tables: keys.partition_skew(tables.facts, tables.listing),
        ("topic",),
        weight="records_skew",
    ),
    Analysis(
        "compaction",
        "Keys",
        "What compaction would remove",
        lambda tables: keys.compaction_gain(tables.facts, tables.batches),
        ("topic",),
        weight="removable_bytes",
    ),
    Analysis(
        "lateness",
        "Time",
        "Records that are older than one appended before them",
        lambda tables: times.lateness(tables.facts),
        ("topic",),
        weight="out_of_order",
    ),
    Analysis(
        "gaps",
        "Time",
        "The longest pauses in traffic",
        lambda tables: times.traffic_gaps(tables.batches),
        ("topic", "rank"),
        weight="seconds",
    ),
    Analysis(
        "rhythm",
        "Time",
        "Records by day of the week and hour of the day",
        lambda tables: times.weekly_rhythm(tables.facts),
        ("topic", "weekday", "hour"),
        digest=digests.rhythm,
    ),
    Analysis(
        "producers",
        "Producers and transactions",
        "Idempotent and transactional producers",
        lambda tables: producers.producers(tables.batches),
        ("topic", "producer_id"),
        weight="bytes",
    ),
    Analysis(
        "transactions",
        "Producers and transactions",
        "Transactions by outcome, counted in each partition",
        lambda tables: producers.transaction_summary(tables.transactions),
        ("topic",),
        weight="records",
    ),
    Analysis(
        "open_transactions",
        "Producers and transactions",
        "Transactions without an end",
        lambda tables: tables.transactions.where(f"outcome = '{producers.OPEN}'"),
        ("topic", "partition", "first_offset"),
        weight="records",
        digest=digests.counted("transactions", "topic"),
    ),
    Analysis(
        "lag",
        "Consumers",
        "Committed offsets and lag of each group",
        lambda tables: tables.lags,
        ("group", "topic", "partition"),
        weight="lag",
    ),
    Analysis(
        "lag_over_time",
        "Consumers",
        "Lag at the moment of each commit",
        lambda tables: consumers.lag_over_time(tables.commits, tables.batches),
        ("group", "topic", "partition", "at"),
        digest=digests.lag_over_time,
    ),
    Analysis(
        "stalled",
        "Consumers",
        "Groups with unread records whose offsets have long stood still",
        lambda tables: consumers.stalled_groups(tables.lags, tables.everything),
        ("group", "topic", "partition"),
        weight="lag",
        digest=digests.lag_by_group,
    ),
    Analysis(
        "faults",
        "Integrity",
        "Everything that is wrong in the files",
        lambda tables: audit(tables.spark, tables.partitions),
        ("log_dir", "file", "position"),
        digest=digests.counted("faults", "kind"),
    ),
)
