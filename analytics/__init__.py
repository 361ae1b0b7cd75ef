"""Log directories as Spark tables, and the answers that people want from them.

Imports `storage` for what the bytes mean, never the running broker: it reads files alone.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make `barnabas`, `barnabas-batches` and `barnabas-problems` known to a Spark session."""
    from analytics.source.sources import register as register_sources

    register_sources(spark)
