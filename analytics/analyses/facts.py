"""What the analyses need of each record: everything but the bytes of its value.

One pass over the records fills this table; whoever asks several questions of it keeps it.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from analytics.analyses.moments import known


def record_facts(records: DataFrame) -> DataFrame:
    """One row per record: where it is, when it is from, its key, and how large it is."""
    return records.select(
        "topic",
        "partition",
        "offset",
        known(f.col("timestamp")).alias("timestamp"),
        "key",
        f.coalesce(f.octet_length("key"), f.lit(0)).alias("key_bytes"),
        f.coalesce(f.octet_length("value"), f.lit(0)).alias("value_bytes"),
        f.col("value").isNull().alias("is_tombstone"),
    )


def record_bytes() -> Column:
    """A record's key and value together, as the fact table has them."""
    return f.col("key_bytes").cast("bigint") + f.col("value_bytes")
