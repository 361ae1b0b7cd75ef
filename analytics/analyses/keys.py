"""Keys: how many there are, which are the heaviest, how they spread, what compaction would free."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.batch_headers import is_data
from analytics.analyses.facts import record_bytes

HEAVIEST: Final = 10

_SHOWN_KEY_BYTES: Final = 64
_DISTINCT_ERROR: Final = 0.02  # the standard deviation of the estimate
_PRINTABLE: Final = r"\A[\x20-\x7E]*\z"


def key_shape(facts: DataFrame) -> DataFrame:
    """Per topic: the share of records without a key, and an estimate of how many keys differ."""
    return facts.groupBy("topic").agg(
        f.count("*").alias("records"),
        f.avg(f.col("key").isNull().cast("int")).alias("null_key_share"),
        f.approx_count_distinct("key", _DISTINCT_ERROR).alias("distinct_keys"),
        f.sum(f.col("is_tombstone").cast("int")).alias("tombstones"),
    )


def heaviest_keys(facts: DataFrame, most: int = HEAVIEST) -> DataFrame:
    """The keys with the most records of each topic; keys that are no plain text are shown in
    hexadecimal, long ones are cut."""
    of_topic = Window.partitionBy("topic")
    by_weight = of_topic.orderBy(f.desc("records"), f.desc("bytes"), "key")
    counted = (
        facts.where(f.col("key").isNotNull())
        .groupBy("topic", "key")
        .agg(f.count("*").alias("records"), f.sum(record_bytes()).alias("bytes"))
    )
    ranked = counted.withColumn("rank", f.row_number().over(by_weight)).withColumn(
        "share", f.col("records") / f.sum("records").over(of_topic)
    )
    return ranked.where(f.col("rank") <= most).select(
        "topic", "rank", _shown(f.col("key")).alias("key"), "records", "bytes", "share"
    )


def partition_skew(facts: DataFrame, listing: DataFrame) -> DataFrame:
    """Per topic: the fullest partition against the mean one, by records and by bytes. Empty
    partitions, which the list of logs names, count; a topic without records has no row."""
    counted = facts.groupBy("topic", "partition").agg(
        f.count("*").alias("records"), f.sum(record_bytes()).alias("bytes")
    )
    listed = listing.select("topic", "partition").distinct()
    each = listed.join(counted, ["topic", "partition"], "left").na.fill(0, ["records", "bytes"])
    fullest = f.max(f.struct("records", (-f.col("partition")).alias("least")))
    return (
        each.groupBy("topic")
        .agg(
            f.count("*").alias("partitions"),
            (-fullest["least"]).alias("fullest_partition"),
            f.max("records").alias("most_records"),
            f.avg("records").alias("mean_records"),
            (f.max("records") / f.nullif(f.avg("records"), f.lit(0.0))).alias("records_skew"),
            (f.max("bytes") / f.nullif(f.avg("bytes"), f.lit(0.0))).alias("bytes_skew"),
        )
        .where(f.col("most_records") > 0)
    )


def compaction_gain(facts: DataFrame, batches: DataFrame) -> DataFrame:
    """What compaction would remove of each topic: all but the last record of each key, and every
    record without a key. A tombstone that is the last of its key stays at first and goes later.

    The share is of the bytes of keys and values; what that makes of the stored ones, compressed
    as they are, is an estimate.
    """
    last = f.max_by(f.struct(record_bytes().alias("bytes"), "is_tombstone"), "offset")
    each = facts.groupBy("topic", "partition", "key").agg(
        f.count("*").alias("records"), f.sum(record_bytes()).alias("bytes"), last.alias("last")
    )
    has_key = f.col("key").isNotNull()
    kept_bytes = f.sum(f.when(has_key, f.col("last.bytes")).otherwise(0))
    gains = each.groupBy("topic").agg(
        f.sum("records").alias("records"),
        (f.sum("records") - f.count_if(has_key)).alias("removable_records"),
        f.sum(f.when(has_key, 0).otherwise(f.col("records"))).alias("keyless_records"),
        (1 - kept_bytes / f.nullif(f.sum("bytes"), f.lit(0))).alias("removable_share"),
        f.count_if(has_key & f.col("last.is_tombstone")).alias("deleted_keys"),
        f.count_if(has_key).alias("keys"),
    )
    stored = batches.where(is_data()).groupBy("topic").agg(f.sum("bytes").alias("stored"))
    removable = f.round(f.col("removable_share") * f.col("stored")).cast("bigint")
    return gains.join(f.broadcast(stored), "topic", "left").select(
        "topic",
        "records",
        "removable_records",
        "keyless_records",
        removable.alias("removable_bytes"),
        "removable_share",
        "deleted_keys",
        "keys",
    )


def _shown(key: Column) -> Column:
    start = f.substring(key, 1, _SHOWN_KEY_BYTES)
    text = f.decode(start, "ISO-8859-1")  # every byte has a character, so nothing fails
    cut = f.when(f.octet_length(key) > _SHOWN_KEY_BYTES, f.lit("…")).otherwise(f.lit(""))
    plain = f.when(text.rlike(_PRINTABLE), text).otherwise(f.concat(f.lit("0x"), f.hex(start)))
    return f.concat(plain, cut)
