"""The shape of batches and records: how large they are, how they are packed, in which formats."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from analytics.analyses.batch_headers import is_data, record_count
from analytics.analyses.facts import record_bytes

PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

_ACCURACY: Final = 1000  # of percentile_approx: a rank is off by a thousandth at the most


def record_sizes(facts: DataFrame) -> DataFrame:
    """Percentiles of key, value and record sizes per topic, in bytes; headers do not count."""
    return facts.groupBy("topic").agg(
        f.count("*").alias("records"),
        *_spread("key_bytes", f.col("key_bytes")),
        *_spread("value_bytes", f.col("value_bytes")),
        *_spread("record_bytes", record_bytes()),
    )


def batch_sizes(batches: DataFrame) -> DataFrame:
    """Percentiles of batch sizes and of records per batch, per topic."""
    data = batches.where(is_data())
    return data.groupBy("topic").agg(
        f.count("*").alias("batches"),
        f.avg(record_count()).alias("records_per_batch_mean"),
        *_spread("records_per_batch", record_count()),
        *_spread("batch_bytes", f.col("bytes")),
    )


def codecs(batches: DataFrame) -> DataFrame:
    """Which codecs each topic's batches are stored in."""
    data = batches.where(is_data())
    return data.groupBy("topic", "codec").agg(*_amounts())


def formats(batches: DataFrame) -> DataFrame:
    """Which message formats (magic) and kinds of timestamps are in use."""
    data = batches.where(is_data())
    return data.groupBy("topic", "magic", "timestamp_type").agg(*_amounts())


def _amounts() -> list[Column]:
    return [
        f.count("*").alias("batches"),
        f.sum(record_count()).alias("records"),
        f.sum("bytes").alias("bytes"),
    ]


def _spread(name: str, size: Column) -> list[Column]:
    named = [
        f.percentile_approx(size, share, _ACCURACY).alias(f"{name}_{label}")
        for label, share in PERCENTILES.items()
    ]
    return [*named, f.max(size).alias(f"{name}_max")]
