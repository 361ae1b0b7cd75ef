"""How well batches are compressed, and what another codec would make of them: tried, not guessed.

A sample of each topic's batches is read from the segment files and packed again with every
codec, each at the level at which Kafka's clients use it.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.batch_headers import is_data, record_count
from analytics.analyses.opened_batches import opened_batch
from storage.records.compression import compress, decompress
from storage.records.errors import RecordDataError
from storage.records.layout import BATCH_HEADER_SIZE, MAGIC_2, Codec

DEFAULT_SAMPLE: Final = 100

_TRIALS: Final = (
    "array<struct<codec: string, stored_bytes: bigint, raw_bytes: bigint, tried_bytes: bigint>>"
)


def codec_trial(batches: DataFrame, batches_per_topic: int = DEFAULT_SAMPLE) -> DataFrame:
    """Per topic and codec: what the sampled batches take now, take uncompressed, and would take.

    Batches of magic 0 and 1 are left out: their messages would be repacked by any conversion.
    """
    data = batches.where(is_data() & (f.col("magic") == MAGIC_2) & (record_count() > 0))
    # A sample that is the same in every run: by a hash of where a batch is, not by chance.
    spot = f.xxhash64("topic", "partition", "base_offset")
    order = Window.partitionBy("topic").orderBy(spot)
    sampled = data.withColumn("n", f.row_number().over(order)).where(
        f.col("n") <= batches_per_topic
    )
    try_batch = f.udf(_try_batch, _TRIALS, useArrow=False)
    tried = sampled.select("topic", f.inline(try_batch("segment", "position", "bytes")))
    return (
        tried.groupBy("topic", "codec")
        .agg(
            f.count("*").alias("sampled_batches"),
            f.sum("stored_bytes").alias("stored_bytes"),
            f.sum("raw_bytes").alias("raw_bytes"),
            f.sum("tried_bytes").alias("tried_bytes"),
        )
        .withColumn("ratio_now", f.col("raw_bytes") / f.col("stored_bytes"))
        .withColumn("ratio", f.col("raw_bytes") / f.col("tried_bytes"))
        .withColumn("saved_share", 1 - f.col("tried_bytes") / f.col("stored_bytes"))
    )


def _try_batch(segment: str, position: int, size: int) -> list[tuple[str, int, int, int]]:
    """Sizes with the header, which no codec touches; a batch that is gone or broken has none."""
    batch = opened_batch(segment, position, size)
    if batch is None:
        return []
    try:
        raw = decompress(batch.header.codec, batch.data[BATCH_HEADER_SIZE:])
    except RecordDataError:
        return []
    return [
        (
            codec.name.lower(),
            len(batch.data),
            BATCH_HEADER_SIZE + len(raw),
            BATCH_HEADER_SIZE + len(compress(codec, raw)),
        )
        for codec in Codec
    ]
