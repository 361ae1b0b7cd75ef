"""Makes tests/fixtures anew: has Apache Kafka write logs and keeps them, with what they hold.

    .venv/bin/python -m scripts.make_fixtures [RELEASE...]

Needs Java and Maven. tests/fixtures/README.md tells what comes out; tests/fidelity/workload.py
tells what is written.
"""

import base64
import gzip
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from kazoo.client import KazooClient

from tests.fidelity.clients import consume, list_partitions
from tests.fidelity.consumed import write_consumed
from tests.fidelity.workload import Workload, wait_until_cleaned
from tests.support.apache_kafka import RELEASES, ApacheKafka, KafkaBroker, apache_kafka

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures"
# The only release here that still writes magic 0 and 1.
RELEASE_WITH_OLD_FORMATS = "2.5.1"

SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.segment.bytes": "4000",
    "transaction.state.log.segment.bytes": "4000",
    "log.segment.delete.delay.ms": "1",
    "log.index.interval.bytes": "300",
}
DUMP_OPTIONS = ("--deep-iteration", "--print-data-log")
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
DUMPED_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
REBUILT_SUFFIXES = (*DUMPED_SUFFIXES[1:], "leader-epoch-checkpoint")
CRASH_REMOVES = (
    ".kafka_cleanshutdown",
    "recovery-point-offset-checkpoint",
    *(f"*-*/*{suffix}" for suffix in DUMPED_SUFFIXES[1:]),
)
SETTLED_SECONDS = 2.0
ELECTIONS_BETWEEN_PHASES = 3


def make(release: str) -> None:
    kafka = apache_kafka(release)
    target = FIXTURES / f"kafka-{release}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    data = target / "data"
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-fixtures-") as directory,
        kafka.cluster(Path(directory), SETTINGS) as broker,
    ):
        write_logs(broker, target)
        broker.stop()
        shutil.copytree(broker.data, data)
        (target / "recovered.json.gz").write_bytes(gzip.compress(recover(broker), mtime=0))
    (target / "dump.txt.gz").write_bytes(gzip.compress(dump(kafka, data), mtime=0))
    print(f"{target}: {sum(p.stat().st_size for p in target.rglob('*') if p.is_file())} bytes")


def write_logs(broker: KafkaBroker, target: Path) -> None:
    """Write everything and keep what consumers read of it."""
    workload = Workload(supports_old_formats=broker.kafka.version == RELEASE_WITH_OLD_FORMATS)
    workload.first_phase(broker.bootstrap)
    wait_until_cleaned(broker.data, workload.compacted_topics)
    broker.stop()
    raise_leader_epochs(broker.zookeeper_connect)
    broker.start()
    workload.second_phase(broker.bootstrap)
    send_with_perf_tool(broker)
    wait_until_cleaned(broker.data, workload.compacted_topics)
    workload.leave_transaction_open(broker.bootstrap)
    wait_until_settled(broker.data)
    partitions = list_partitions(broker.bootstrap)
    for isolation in ("read_uncommitted", "read_committed"):
        read = consume(broker.bootstrap, partitions, isolation=isolation)
        write_consumed(target / f"{isolation}.json.gz", read)


def raise_leader_epochs(zookeeper_connect: str) -> None:
    """Let it look as if leaders had been elected meanwhile, which takes more than one broker."""
    client = KazooClient(zookeeper_connect)
    client.start()
    try:
        for topic in client.get_children("/brokers/topics"):
            path = f"/brokers/topics/{topic}/partitions/0/state"
            state = json.loads(client.get(path)[0])
            state["leader_epoch"] += ELECTIONS_BETWEEN_PHASES
            client.set(path, json.dumps(state).encode())
    finally:
        client.stop()
        client.close()


def send_with_perf_tool(broker: KafkaBroker) -> None:
    """Batches as Kafka's own Java producer makes them."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        broker.kafka.run(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", f"sent-{codec}", "--num-records", "20", "--record-size", "60"),
            *("--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.bootstrap}"),
            *(f"compression.type={codec}", "batch.size=500"),
        )


def wait_until_settled(data: Path) -> None:
    """Return when no file has changed for a while: cleaner and deletions are done."""
    seen = files = None
    since = time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        files = sorted((str(p), p.stat().st_size) for p in data.glob("*-*/*") if p.exists())
        if files != seen:
            seen, since = files, time.monotonic()
        time.sleep(0.1)


def recover(broker: KafkaBroker) -> bytes:
    """What Kafka makes anew of all but the records, after a crash that left nothing else."""
    data = broker.data
    logs = {path: path.read_bytes() for path in data.glob("*-*/*.log")}
    for pattern in CRASH_REMOVES:
        for path in data.glob(pattern):
            path.unlink()
    broker.settings["log.cleaner.enable"] = "false"
    broker.start()
    broker.stop()
    assert logs == {path: path.read_bytes() for path in data.glob("*-*/*.log")}
    rebuilt = {
        str(path.relative_to(data)): base64.b64encode(path.read_bytes()).decode()
        for suffix in REBUILT_SUFFIXES
        for path in sorted(data.glob(f"*-*/*{suffix}"))
    }
    return json.dumps(rebuilt, separators=(",", ":")).encode()


def dump(kafka: ApacheKafka, data: Path) -> bytes:
    """What DumpLogSegments says of all files, with names relative to the log directory."""
    files = [p for p in sorted(data.glob("*-*/*")) if p.suffix in DUMPED_SUFFIXES]
    texts = [kafka.dump_log(files, *DUMP_OPTIONS)]
    for topic, decoder in DECODERS.items():
        logs = sorted(data.glob(f"{topic}-*/*.log"))
        texts.append(kafka.dump_log(logs, *DUMP_OPTIONS, decoder))
    parts = [part for text in texts for part in (text.output, text.errors)]
    whole = "".join(parts).replace(f"{data}/", "")
    return whole.encode(errors="surrogateescape")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or RELEASES:
        make(wanted)
