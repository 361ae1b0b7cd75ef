"""What the headers of batches say, as far as it can be true: a flipped bit changes no count."""

from pyspark.sql import Column
from pyspark.sql import functions as f


def is_data() -> Column:
    """Whether a batch holds records, and not the marker of a transaction."""
    return ~f.col("is_control")


def record_count() -> Column:
    """The records in a batch: no more than it has offsets, whatever its header says."""
    offsets = f.try_add(f.try_subtract("last_offset", "base_offset"), f.lit(1))
    counted = f.col("record_count").cast("bigint")
    return f.greatest(f.lit(0), f.least(counted, offsets))
