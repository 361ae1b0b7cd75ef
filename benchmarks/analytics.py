"""Reading a topic with Spark: our source over the segment files, against Spark's own Kafka source.

One broker (Apache Kafka 3.9.1) holds the topics; its log directory is read by `barnabas` and
`barnabas-batches` while Spark's Kafka source reads the same topics from it, in the same run. Prints
rows/s and MB/s of the second run of each query, and ratios; beside them what Spark does with rows
that a Python source has ready, the ceiling of this way in. The topics are so large that a query
takes seconds: Spark's planning alone is a quarter of one. Then: the last hundredth of a 5 GB
topic against all of it, and the memory of one task over a small and a large segment.
Run: python -m benchmarks.analytics [--scale F] [--only compare|tail|memory] [--master M]
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.analytics_topics import Topic, produce, write_large_topic
from benchmarks.serve_servers import KAFKA_DEFAULTS, KAFKA_HEAP, KAFKA_PERFORMANCE_OPTIONS
from benchmarks.spark_kafka_source import connector_jars, python_with_connector
from broker.java import find_java, spark_java_home
from tests.support.apache_kafka import apache_kafka

PROJECT: Final = Path(__file__).resolve().parents[1]
MASTERS: Final = ("local[1]", "local[2]")
TIMEOUT_SECONDS: Final = 600.0
LARGE_TOPIC_BYTES: Final = 5_000_000_000
TOPICS: Final = (
    Topic("small-none", 100, "none", 16_000_000),
    Topic("small-zstd", 100, "zstd", 16_000_000),
    Topic("large-none", 1000, "none", 5_000_000),
    Topic("large-zstd", 1000, "zstd", 5_000_000),
)


@dataclass(frozen=True, slots=True)
class Timing:
    name: str
    rows: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of records")
    parser.add_argument("--only", choices=("compare", "tail", "memory"))
    parser.add_argument("--master", choices=MASTERS, help="compare on this one alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as directory:
        os.environ["JAVA_HOME"] = str(spark_java_home(find_java(), Path(directory) / "java"))
        if arguments.only in (None, "compare"):
            masters = (arguments.master,) if arguments.master else MASTERS
            compare(Path(directory), arguments.scale, masters)
        if arguments.only in (None, "tail", "memory"):
            total = int(LARGE_TOPIC_BYTES * arguments.scale)
            data = Path(directory) / "large"
            records = write_large_topic(data, "large", total)
            if arguments.only != "memory":
                tail(data, records)
            if arguments.only != "tail":
                memory(data)


def compare(directory: Path, scale: float, masters: Sequence[str]) -> None:
    """Each topic through each source on each master."""
    topics = [topic.scaled(scale) for topic in TOPICS]
    kafka = dataclasses.replace(
        apache_kafka("3.9.1"), jvm_options=(*KAFKA_HEAP, *KAFKA_PERFORMANCE_OPTIONS)
    )
    with kafka.cluster(directory / "kafka", {**KAFKA_DEFAULTS, "num.partitions": "2"}) as broker:
        for topic in topics:
            produce(broker.bootstrap, topic)
        for master in masters:
            theirs = run_queries(
                master,
                [kafka_query(topic, broker.bootstrap) for topic in topics],
                python_with_connector(),
                connector_jars(),
            )
            ours = run_queries(master, [record_query(topic, broker.data) for topic in topics])
            batches = run_queries(master, [batch_query(topic, broker.data) for topic in topics])
            ceiling = run_queries(master, [prebuilt_query(topic) for topic in topics])
            print_comparison(master, topics, theirs, ours, batches, ceiling)


def kafka_query(topic: Topic, bootstrap: str) -> dict[str, Any]:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic.name}
    return {"name": topic.name, "format": "kafka", "options": options, "rows": topic.records}


def record_query(topic: Topic, data: Path) -> dict[str, Any]:
    options = {"path": str(data), "subscribe": topic.name}
    return {"name": topic.name, "format": "barnabas", "options": options, "rows": topic.records}


def batch_query(topic: Topic, data: Path) -> dict[str, Any]:
    options = {"path": str(data), "subscribe": topic.name}
    return {
        "name": topic.name,
        "format": "barnabas-batches",
        "options": options,
        "sum": "record_count",
    }


def prebuilt_query(topic: Topic) -> dict[str, Any]:
    options = {"rows": topic.records, "bytes": topic.record_bytes}
    return {"name": topic.name, "format": "prebuilt", "options": options, "rows": topic.records}


def run_queries(
    master: str,
    queries: Sequence[dict[str, Any]],
    python: Path | None = None,
    jars: Sequence[Path] = (),
) -> dict[str, Timing]:
    """The last run of each query, in a Spark of their own."""
    job = {"master": master, "jars": [str(jar) for jar in jars], "queries": queries, "runs": 2}
    environment = {name: text for name, text in os.environ.items() if name != "SPARK_HOME"}
    if not jars:
        environment["PYTHONPATH"] = str(PROJECT)
    finished = subprocess.run(
        # -P: this folder has an analytics and a storage of its own
        [str(python or sys.executable), "-P", str(PROJECT / "benchmarks" / "analytics_query.py")],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env=environment,
        cwd=tempfile.gettempdir(),
    )
    if finished.returncode:
        raise SystemExit(finished.stderr[-4000:])
    results = [json.loads(line) for line in finished.stdout.splitlines()]
    return {
        result["name"]: Timing(result["name"], result["rows"], result["seconds"][-1])
        for result in results
    }


def print_comparison(
    master: str,
    topics: Sequence[Topic],
    theirs: dict[str, Timing],
    ours: dict[str, Timing],
    batches: dict[str, Timing],
    ceiling: dict[str, Timing],
) -> None:
    titles = f"{'Spark from Kafka':>22} {'barnabas':>22} {'batches':>29} {'prebuilt rows':>29}"
    print(f"\n{master:12} {titles}")
    for topic in topics:
        base = theirs[topic.name].seconds
        assert batches[topic.name].rows == topic.records, "the batch table misses records"
        cells = [
            _rates(topic, theirs[topic.name]),
            f"{_rates(topic, ours[topic.name])} {base / ours[topic.name].seconds:5.1f}x",
            f"{_rates(topic, batches[topic.name])} {base / batches[topic.name].seconds:5.1f}x",
            f"{_rates(topic, ceiling[topic.name])} {base / ceiling[topic.name].seconds:5.1f}x",
        ]
        print(f"{topic.name:12} {' '.join(cells)}", flush=True)


def _rates(topic: Topic, timing: Timing) -> str:
    rows = topic.records / timing.seconds
    return f"{rows:11,.0f}/s {rows * topic.record_bytes / 1e6:5,.0f} MB/s"


def tail(data: Path, records: int) -> None:
    """The last hundredth of a topic, by a filter and by an option, against all of it."""
    first = records - records // 100
    options = {"path": str(data)}
    starting = {**options, "startingOffsets": json.dumps({"large": {"0": first}})}
    queries = [
        {"name": "all", "format": "barnabas", "options": options},
        {
            "name": "filter",
            "format": "barnabas",
            "options": {**options, "pushDownPredicate": "true"},
            "where": f"offset >= {first}",
        },
        {"name": "option", "format": "barnabas", "options": starting},
        {**batch_query(Topic("large", 1000, "none", records), data), "name": "batches"},
    ]
    timings = run_queries("local[2]", queries)
    whole = timings["all"].seconds
    print(f"\nall of {records:,} records on local[2]: {whole:.2f} s")
    for name in ("filter", "option"):
        seconds = timings[name].seconds
        print(f"the last hundredth by {name}: {seconds:.2f} s, a {whole / seconds:.0f}th")
    seconds = timings["batches"].seconds
    print(f"all of it as batches: {seconds:.2f} s, {records / seconds:,.0f} records/s")


def memory(data: Path) -> None:
    """The peak of a process that reads a whole segment as one task reads its piece."""
    print("\npeak memory of a task")
    for share in (0.05, 1.0):
        command = [sys.executable, "-m", "benchmarks.analytics_topics", str(data), str(share)]
        finished = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT)
        print(finished.stdout, end="", flush=True)


if __name__ == "__main__":
    main()
