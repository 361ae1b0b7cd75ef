"""What each partition holds: records, bytes, offsets and the span of time, from the batch table."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f


def inventory(batches: DataFrame) -> DataFrame:
    """One row per log directory, topic and partition, in no order.

    Records are what consumers see: control batches (the markers of transactions) are none, and a
    compacted batch counts the records that are left in it. Bytes and offsets are the log's own.
    """
    is_data = ~f.col("is_control")
    return batches.groupBy("log_dir", "topic", "partition").agg(
        f.coalesce(f.sum(f.when(is_data, f.col("record_count"))), f.lit(0)).alias("records"),
        f.sum("bytes").alias("bytes"),
        f.min("base_offset").alias("first_offset"),
        f.max("last_offset").alias("last_offset"),
        f.min(f.when(is_data, f.col("first_timestamp"))).alias("first_timestamp"),
        f.max(f.when(is_data, f.col("last_timestamp"))).alias("last_timestamp"),
    )
