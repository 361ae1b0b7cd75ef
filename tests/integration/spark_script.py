"""A Spark job as a user writes one, run by other Pythons than the tests' own: it prints, as JSON,
what it read and where the code came from. Nothing is registered: Spark finds the sources."""

import json
import os
import sys
import tempfile
from typing import Any

from pyspark.sql import SparkSession


def main(logs: str, registers: bool) -> None:
    builder = SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # Before anything is registered: what comes with --py-files, or lies on the path, and no more.
    workers = set(spark.sparkContext.parallelize(range(40), 8).map(whence).collect())
    if registers:
        import analytics

        analytics.register(spark)
    records = spark.read.format("barnabas").options(includeHeaders="true", minPartitions="6")
    committed = records.option("isolationLevel", "read_committed").load(logs)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    narrowed = records.option("pushDownPredicate", "true").load(logs)
    batches = spark.read.format("barnabas-batches").load(logs)
    problems = spark.read.format("barnabas-problems").load(logs)
    result = {
        "committed": {
            row.topic: row["count"] for row in committed.groupBy("topic").count().collect()
        },
        "filtered": narrowed.where("topic = 'sent-zstd' AND offset >= 100").count(),
        "batches": batches.where("is_control").count(),
        "problems": problems.count(),
        "streamed": stream(spark, logs),
        "workers": sorted(workers),
        "version": spark.version,
    }
    print(json.dumps(result))
    spark.stop()


def whence(_number: int) -> tuple[str, str, str]:
    """The Python that runs this, where it has the code from, and whose worker it is."""
    import analytics

    return sys.executable, os.path.dirname(os.path.dirname(analytics.__file__)), os.getcwd()


def stream(spark: SparkSession, logs: str) -> list[int]:
    """Rows per batch of a query that goes on until it is stopped, and of the same one started again
    from its checkpoint for what is there."""
    sizes: list[int] = []
    triggers: tuple[dict[str, Any], ...] = ({"processingTime": "1 second"}, {"availableNow": True})
    with tempfile.TemporaryDirectory() as directory:
        for trigger in triggers:
            query = (
                spark.readStream.format("barnabas")
                .options(subscribe="sent-zstd", startingOffsets="earliest")
                .option("maxOffsetsPerTrigger", "100")
                .load(logs)
                .writeStream.format("noop")
                .option("checkpointLocation", directory)
                .trigger(**trigger)
                .start()
            )
            query.processAllAvailable()
            query.stop()
            sizes += [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]
    return sizes


if __name__ == "__main__":
    main(sys.argv[1], registers=sys.argv[2] == "register")
