"""Producers and transactions: who wrote what, what was aborted, what was left open.

All from the batch table.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.batch_headers import is_data, record_count

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"


def producers(batches: DataFrame) -> DataFrame:
    """Per topic and producer id: epochs, batches, records and the time it was at work."""
    return (
        batches.where(is_data() & f.col("producer_id").isNotNull())
        .groupBy("topic", "producer_id")
        .agg(
            f.min("producer_epoch").alias("first_epoch"),
            f.max("producer_epoch").alias("last_epoch"),
            f.countDistinct("producer_epoch").alias("epochs"),
            f.count("*").alias("batches"),
            f.sum(record_count()).alias("records"),
            f.sum("bytes").alias("bytes"),
            f.max("is_transactional").alias("is_transactional"),
            f.min("first_timestamp").alias("first_timestamp"),
            f.max("last_timestamp").alias("last_timestamp"),
        )
    )


def transactions(batches: DataFrame) -> DataFrame:
    """One row per transaction and partition: what it wrote there, and how it ended, if it did.

    A marker ends all that its producer wrote to the partition since the marker before. One that
    ends nothing, as a transaction leaves it in a partition that it did not write to, has no row.
    """
    return (
        transactional_batches(batches)
        .groupBy("topic", "partition", "producer_id", "marker_offset", "outcome")
        .agg(
            f.max("producer_epoch").alias("producer_epoch"),
            f.min("first_offset").alias("first_offset"),
            f.max("last_offset").alias("last_offset"),
            f.sum("records").alias("records"),
            f.min("first_timestamp").alias("first_timestamp"),
            f.max("last_timestamp").alias("last_timestamp"),
        )
    )


def transactional_batches(batches: DataFrame) -> DataFrame:
    """The batches that transactions wrote, each with its transaction's outcome."""
    onwards = (
        Window.partitionBy("topic", "partition", "producer_id")
        .orderBy("first_offset")
        .rowsBetween(Window.currentRow, Window.unboundedFollowing)
    )
    moments = _writes(batches).unionByName(_ends(batches), allowMissingColumns=True)
    for name in ("marker_offset", "outcome"):
        moments = moments.withColumn(name, f.first(name, ignorenulls=True).over(onwards))
    return moments.where(f.col("records").isNotNull()).withColumn(
        "outcome", f.coalesce("outcome", f.lit(OPEN))
    )


def transaction_summary(transactions: DataFrame) -> DataFrame:
    """Per topic: transactions by outcome, and the share of their records that was aborted."""
    aborted = f.sum(f.when(f.col("outcome") == ABORTED, f.col("records")).otherwise(0))
    counts = [
        f.sum((f.col("outcome") == outcome).cast("int")).alias(outcome)
        for outcome in (COMMITTED, ABORTED, OPEN)
    ]
    return transactions.groupBy("topic").agg(
        *counts,
        f.sum("records").alias("records"),
        (aborted / f.nullif(f.sum("records"), f.lit(0))).alias("aborted_share"),
    )


def _writes(batches: DataFrame) -> DataFrame:
    return batches.where(f.col("is_transactional") & is_data()).select(
        "topic",
        "partition",
        "producer_id",
        "producer_epoch",
        f.col("base_offset").alias("first_offset"),
        "last_offset",
        record_count().alias("records"),
        "first_timestamp",
        "last_timestamp",
    )


def _ends(batches: DataFrame) -> DataFrame:
    """How transactions ended, by their markers."""
    return batches.where(f.col("control_type").isNotNull()).select(
        "topic",
        "partition",
        "producer_id",
        f.col("base_offset").alias("first_offset"),
        f.col("base_offset").alias("marker_offset"),
        f.when(f.col("control_type") == "commit", COMMITTED).otherwise(ABORTED).alias("outcome"),
    )
