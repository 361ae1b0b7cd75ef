"""Each partition once: replicas that lie side by side hold the same records.

Owns which replica speaks for its partition: the one that reaches furthest, as in the record table.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

_REPLICA: Final = ("log_dir", "topic", "partition")


def furthest(replicas: DataFrame) -> DataFrame:
    """Of a table with one row per replica and the column last_offset: one row per partition."""
    by_reach = Window.partitionBy("topic", "partition").orderBy(
        f.desc_nulls_last("last_offset"), "log_dir"
    )
    ranked = replicas.withColumn("reach", f.row_number().over(by_reach))
    return ranked.where(f.col("reach") == 1).drop("reach")


def each_partition_once(batches: DataFrame) -> DataFrame:
    """The batch table without the replicas that others outreach."""
    reach = batches.groupBy(*_REPLICA).agg(f.max("last_offset").alias("last_offset"))
    return batches.join(furthest(reach).select(*_REPLICA), list(_REPLICA), "left_semi")
