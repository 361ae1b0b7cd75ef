"""`barnabas analyze`: counts with Spark what log directories hold, and prints it.

Owns the steps of the command. A person sees a line of progress, then the table.
"""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from analytics.logs.partitions import find_partitions
from analytics.report import (
    InventoryRow,
    print_inventory,
    unread_tails,
    with_empty_partitions,
)
from analytics.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def analyze(directory: Path, java_home: Path, master: str, spark_log: Path | None) -> None:
    """Print the inventory of a directory. Raises AnalysisError.

    Spark's own words go to `spark_log`; without one they are kept only if Spark fails.
    """
    partitions = find_partitions(directory)
    total = sum(log.size for log in partitions)
    log_file = spark_log.absolute() if spark_log is not None else _temporary_log()
    progress = Console(stderr=True).status("Starting Spark ...")
    with (
        progress,
        tempfile.TemporaryDirectory(prefix="barnabas-spark-") as scratch,
        spark_session(java_home, master, log_file, Path(scratch)) as spark,
    ):
        progress.update(f"Reading {len(partitions):,} partitions, {total:,} bytes ...")
        counted = count_partitions(spark, directory)
    if spark_log is None:
        log_file.unlink(missing_ok=True)
    rows = with_empty_partitions(counted, partitions)
    print_inventory(rows, unread_tails(rows, partitions), Console())


def count_partitions(spark: "SparkSession", directory: Path) -> list[InventoryRow]:
    """The inventory of all partitions that hold a batch."""
    from pyspark.sql import functions as f

    from analytics.inventory import inventory
    from analytics.source.sources import BATCHES, register

    register(spark)
    reader = spark.read.format(BATCHES).option("onDamage", "skip")
    batches = reader.load(str(directory.absolute()))
    counted = inventory(batches).select(
        "log_dir",
        "topic",
        "partition",
        "records",
        "bytes",
        "first_offset",
        "last_offset",
        f.unix_millis("first_timestamp"),
        f.unix_millis("last_timestamp"),
    )
    return [InventoryRow(*row) for row in counted.collect()]


def _temporary_log() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="barnabas-spark-", suffix=".log")
    os.close(descriptor)
    return Path(name)
