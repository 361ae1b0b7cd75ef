"""Times queries in one Spark session, in whatever interpreter runs this file.

Takes a job as JSON on standard input and prints one JSON line per query: the seconds of each of
its runs and the rows that it read. Imports nothing of the project unless the source is ours, so
that it also runs beside an older PySpark with Spark's own Kafka source.
"""

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    job = json.load(sys.stdin)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = _session(job)
    for query in job["queries"]:
        seconds, rows = [], 0
        for _ in range(job["runs"]):
            begun = time.perf_counter()
            rows = _run(spark, query)
            seconds.append(time.perf_counter() - begun)
        print(json.dumps({"name": query["name"], "seconds": seconds, "rows": rows}), flush=True)
    spark.stop()


def _session(job: dict[str, Any]) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(job["master"])
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
    )
    if job["jars"]:
        builder = builder.config("spark.jars", ",".join(job["jars"]))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if not job["jars"]:
        import analytics
        from benchmarks.prebuilt_source import PrebuiltSource

        analytics.register(spark)
        spark.dataSource.register(PrebuiltSource)
    return spark


def _run(spark: Any, query: dict[str, Any]) -> int:
    """Read everything and keep nothing; the rows are counted on the way where that is free."""
    rows = spark.read.format(query["format"]).options(**query["options"]).load()
    if query.get("where"):
        rows = rows.where(query["where"])
    if query.get("sum"):
        return int(rows.agg({query["sum"]: "sum"}).collect()[0][0])
    rows.write.format("noop").mode("overwrite").save()
    return int(query.get("rows", 0))


if __name__ == "__main__":
    main()
