"""Time: how late records come, where traffic pauses, and at which hours it flows."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from analytics.analyses.moments import credible, hour_of_day, seconds, weekday
from analytics.analyses.runs import runs

LONGEST_GAPS: Final = 10
# A pause is a gap if it is this much longer than usual, and not a blink.
GAP_FACTOR: Final = 20
SHORTEST_GAP_SECONDS: Final = 60.0


def lateness(facts: DataFrame) -> DataFrame:
    """Per topic: how far records lie behind the newest one that was appended before them."""
    in_order = Window.partitionBy("topic", "partition").orderBy("offset")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    newest_before = f.max("timestamp").over(before)
    late = facts.where(f.col("timestamp").isNotNull()).select(
        "topic",
        f.greatest(f.lit(0.0), seconds(newest_before) - seconds(f.col("timestamp"))).alias(
            "late_seconds"
        ),
    )
    is_late = f.col("late_seconds") > 0
    return late.groupBy("topic").agg(
        f.count("*").alias("records"),
        f.sum(is_late.cast("int")).alias("out_of_order"),
        f.avg(is_late.cast("int")).alias("out_of_order_share"),
        f.percentile_approx(f.when(is_late, f.col("late_seconds")), 0.5).alias("late_seconds_p50"),
        f.percentile_approx(f.when(is_late, f.col("late_seconds")), 0.99).alias("late_seconds_p99"),
        f.max(f.when(is_late, f.col("late_seconds"))).alias("late_seconds_max"),
    )


def traffic_gaps(batches: DataFrame, most: int = LONGEST_GAPS) -> DataFrame:
    """The longest pauses of each topic: from the newest record so far to the next one, where that
    is far longer than this topic's batches are usually apart. Clocks that were wrong make none,
    unless a topic knows no others."""
    is_credible = credible(f.col("first_timestamp")) & credible(f.col("last_timestamp"))
    knows_others = f.bool_or(is_credible).over(Window.partitionBy("topic"))
    data = runs(batches, SHORTEST_GAP_SECONDS).withColumn("knows_others", knows_others)
    data = data.where(is_credible | ~f.col("knows_others"))
    in_time = Window.partitionBy("topic").orderBy("first_timestamp", "last_timestamp")
    before = in_time.rowsBetween(Window.unboundedPreceding, -1)
    quiet_since = f.max("last_timestamp").over(before)
    pauses = data.select(
        "topic", quiet_since.alias("gap_start"), f.col("first_timestamp").alias("gap_end")
    ).withColumn("seconds", seconds(f.col("gap_end")) - seconds(f.col("gap_start")))
    usual = f.percentile_approx(f.greatest(f.col("seconds"), f.lit(0.0)), 0.5)
    typical = pauses.groupBy("topic").agg(usual.alias("usual_seconds"))
    by_length = Window.partitionBy("topic").orderBy(f.desc("seconds"), "gap_start")
    is_gap = f.col("seconds") > f.greatest(
        f.lit(SHORTEST_GAP_SECONDS), f.col("usual_seconds") * GAP_FACTOR
    )
    return (
        pauses.join(typical, "topic")
        .where(is_gap)
        .withColumn("rank", f.row_number().over(by_length))
        .where(f.col("rank") <= most)
        .select("topic", "rank", "gap_start", "gap_end", "seconds", "usual_seconds")
    )


def weekly_rhythm(facts: DataFrame) -> DataFrame:
    """Records by topic, day of the week (Monday is 0) and hour of the day, in UTC."""
    return (
        facts.where(f.col("timestamp").isNotNull())
        .groupBy(
            "topic",
            weekday(f.col("timestamp")).alias("weekday"),
            hour_of_day(f.col("timestamp")).alias("hour"),
        )
        .agg(f.count("*").alias("records"))
    )
