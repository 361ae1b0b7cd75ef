"""What stands for an answer that is too large to leave Spark whole: what charts draw, and what
sentences count."""

from collections.abc import Callable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from analytics.analyses.moments import credible, seconds

MOST_LINES: Final = 8  # more lines than colours could not be told apart
MOST_POINTS: Final = 400  # of a line
INTERNAL: Final = "__"  # how the names of the broker's own topics begin

_HOUR: Final = 3600


def traffic(answer: DataFrame) -> DataFrame:
    """The topics with the most records, by steps of whole hours; records are an hour's mean."""
    largest = _largest(_drawn(answer, "hour"), ("topic",), f.sum("records"))
    step = f.ceil((seconds(f.col("last")) - seconds(f.col("first")) + _HOUR) / _HOUR / MOST_POINTS)
    return (
        _by_steps(largest, "hour", step * _HOUR)
        .groupBy("topic", "hour", (f.col("step") / _HOUR).cast("int").alias("hours"))
        .agg((f.sum("records") / f.first("step") * _HOUR).alias("records"))
    )


def rhythm(answer: DataFrame) -> DataFrame:
    """All topics of users together, and all of the broker's own."""
    whose = f.when(f.col("topic").startswith(INTERNAL), INTERNAL).otherwise("")
    return answer.groupBy(whose.alias("topic"), "weekday", "hour").agg(
        f.sum("records").alias("records")
    )


def lag_over_time(answer: DataFrame) -> DataFrame:
    """The groups and partitions with the largest lags, by the largest of each step."""
    names = ("group", "topic", "partition")
    largest = _largest(_drawn(answer.where(f.col("lag").isNotNull()), "at"), names, f.max("lag"))
    step = f.greatest(f.lit(1.0), (seconds(f.col("last")) - seconds(f.col("first"))) / MOST_POINTS)
    return _by_steps(largest, "at", step).groupBy(*names, "at").agg(f.max("lag").alias("lag"))


def counted(noun: str, *columns: str) -> Callable[[DataFrame], DataFrame]:
    """How many rows there are of each kind."""
    return lambda answer: answer.groupBy(*columns).agg(f.count("*").alias(noun))


def lag_by_group(answer: DataFrame) -> DataFrame:
    return answer.groupBy("group").agg(f.sum("lag").alias("lag"))


def _drawn(answer: DataFrame, time: str) -> DataFrame:
    """The rows of times that clocks can have shown, or all if there are none, with the first and
    the last time."""
    at = f.col(time)
    span = answer.agg(
        f.coalesce(f.min(f.when(credible(at), at)), f.min(at)).alias("first"),
        f.coalesce(f.max(f.when(credible(at), at)), f.max(at)).alias("last"),
    )
    return answer.crossJoin(f.broadcast(span)).where(at.between(f.col("first"), f.col("last")))


def _largest(answer: DataFrame, names: Sequence[str], weight: Column) -> DataFrame:
    weighed = answer.groupBy(*names).agg(weight.alias("weight"))
    largest = weighed.orderBy(f.desc("weight"), *names).limit(MOST_LINES)
    return answer.join(f.broadcast(largest), list(names), "left_semi")


def _by_steps(answer: DataFrame, time: str, step: Column) -> DataFrame:
    """Each time is that at which its step begins."""
    first = seconds(f.col("first"))
    begins = first + f.floor((seconds(f.col(time)) - first) / f.col("step")) * f.col("step")
    return answer.withColumn("step", step).withColumn(
        time, f.timestamp_millis((begins * 1000).cast("bigint"))
    )
