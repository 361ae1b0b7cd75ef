"""What is asked and changed of configuration, the same of Apache Kafka and of Barnabas.

    .venv/bin/python -m tests.fidelity.config_scenario

has Apache Kafka 2.5.1 answer and keeps the answers in tests/fixtures.
"""

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from network.protocol.messages.describe_configs import DescribeConfigsResult
from network.protocol.messages.metadata import MetadataRequest
from tests.support.apache_kafka import _BROKER_SETTINGS, apache_kafka
from tests.support.api import create_topic
from tests.support.configs import (
    APPEND,
    BROKER,
    DELETE,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    Verdict,
    ask,
    change,
    entries,
    eventually,
    read_znode,
    replace,
)
from tests.support.raw_client import RawClient

RELEASE = "2.5.1"
FIXTURE = Path(__file__).parents[1] / "fixtures" / f"kafka-{RELEASE}-configs.json.gz"

SETTINGS = {
    **_BROKER_SETTINGS,
    "num.partitions": "4",
    "log.segment.bytes": "100000",
    "log.retention.hours": "24",
    "log.roll.ms": "60000",
    "password.encoder.secret": "secret",
    "password.encoder.old.secret": "old secret",
    "listener.name.plaintext.ssl.keystore.type": "PEM",
    "some.plugin": "x",
}
PASSWORD = "listener.name.external.ssl.key.password"

DEFAULTS = [("log.segment.bytes", SET, "200000"), ("message.max.bytes", SET, "70000")]
OWN = [
    ("log.segment.bytes", SET, "300000"),
    ("log.retention.ms", SET, "7000"),
    ("my.key", SET, "v"),
    ("leader.replication.throttled.rate", SET, "1000"),
    (PASSWORD, SET, "hüsh"),
]

CHANGES: list[tuple[int, str, list[tuple[str, int, str | None]]]] = [
    (TOPIC, "topic", [("flush.ms", SET, "x")]),
    (TOPIC, "topic", [("flush.ms", SET, "-1")]),
    (TOPIC, "topic", [("no.such", SET, "x")]),
    (TOPIC, "topic", [("no.such", DELETE, None)]),
    (TOPIC, "absent", [("flush.ms", SET, "1")]),
    (TOPIC, "a/b", [("flush.ms", SET, "1")]),
    (TOPIC, "topic", [("flush.ms", APPEND, "1")]),
    (TOPIC, "topic", [("flush.ms", SUBTRACT, "1")]),
    (TOPIC, "topic", [("flush.ms", SET, "1"), ("flush.ms", DELETE, None)]),
    (TOPIC, "topic", [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")]),
    (TOPIC, "topic", [("cleanup.policy", SET, "none")]),
    (TOPIC, "topic", [("cleanup.policy", SET, "")]),
    (TOPIC, "topic", [("cleanup.policy", SET, "compact")]),
    (TOPIC, "topic", [("cleanup.policy", APPEND, "delete")]),
    (TOPIC, "topic", [("cleanup.policy", SUBTRACT, "compact")]),
    (TOPIC, "topic", [("compression.type", SET, "ZSTD")]),
    (TOPIC, "topic", [("leader.replication.throttled.replicas", SET, "0:0")]),
    (TOPIC, "topic", [("leader.replication.throttled.replicas", APPEND, "1:0")]),
    (TOPIC, "topic", [("leader.replication.throttled.replicas", SET, "zero")]),
    (BROKER, "7", [("num.io.threads", SET, "3")]),
    (BROKER, "x", [("num.io.threads", SET, "3")]),
    (BROKER, "0", [("num.io.threads", SET, "x")]),
    (BROKER, "0", [("num.io.threads", SET, "0")]),
    (BROKER, "0", [("num.io.threads", SET, "5")]),
    (BROKER, "0", [("num.io.threads", APPEND, "1")]),
    (BROKER, "0", [("num.partitions", SET, "3")]),
    (BROKER, "0", [("log.retention.hours", SET, "5")]),
    (BROKER, "0", [("ssl.keystore.type", SET, "JKS")]),
    (BROKER, "", [("listeners", SET, "PLAINTEXT://:1")]),
    (BROKER, "", [("listener.name.x.ssl.key.password", SET, "h")]),
    (BROKER, "0", [("log.cleaner.threads", SET, "3")]),
    (BROKER, "0", [("log.roll.ms", SET, "0")]),
    (BROKER, "0", [("log.cleaner.dedupe.buffer.size", SET, "10")]),
    (BROKER, "0", [("log.cleanup.policy", SET, "compact")]),
    (BROKER, "0", [("log.cleanup.policy", APPEND, "delete")]),
    (BROKER, "0", [("compression.type", SET, "brotli")]),
    (BROKER, "0", [("max.connections.per.ip", SET, "0")]),
    (BROKER, "0", [("advertised.listeners", SET, "OTHER://h:1")]),
    (BROKER, "0", [("advertised.listeners", SET, "PLAINTEXT://0.0.0.0:1")]),
    (BROKER, "0", [("listener.security.protocol.map", SET, "PLAINTEXT:SSL")]),
    (LOGGER, "0", [("no.such", SET, "INFO")]),
    (LOGGER, "0", [("root", SET, "LOUD")]),
    (LOGGER, "0", [("root", DELETE, None)]),
    (LOGGER, "0", [("root", APPEND, "INFO")]),
    (LOGGER, "0", [("root", SET, "INFO")]),
    (LOGGER, "", [("root", SET, "INFO")]),
    (LOGGER, "3", [("root", SET, "INFO")]),
    (3, "group", [("x", SET, "1")]),
]
REPLACEMENTS = [
    (TOPIC, "topic", {"flush.ms": "-1"}),
    (TOPIC, "absent", {}),
    (BROKER, "3", {}),
    (BROKER, "0", {"num.partitions": "3"}),
    (LOGGER, "0", {"root": "INFO"}),
    (3, "group", {}),
    (TOPIC, "topic", {"retention.ms": "9", "flush.ms": "8"}),
]
QUESTIONS = [
    (TOPIC, "absent"),
    (TOPIC, "a/b"),
    (TOPIC, ""),
    (BROKER, "7"),
    (BROKER, "x"),
    (LOGGER, ""),
    (LOGGER, "7"),
    (3, "group"),
    (99, "x"),
]

Answers = dict[str, Any]


def answers(port: int, zookeeper_connect: str) -> Answers:
    """Everything that a fresh broker 0, started with SETTINGS, says."""
    with RawClient(port) as client:
        eventually(lambda: bool(client.ask(MetadataRequest(), 9).brokers))
        create_topic(client, "topic", retention_ms="5000")
        result: Answers = {
            "broker": _described(ask(client, BROKER, "0", synonyms=True)),
            "topic": _described(ask(client, TOPIC, "topic", synonyms=True)),
            "first verdicts": [
                change(client, BROKER, "", *DEFAULTS),
                change(client, BROKER, "0", *OWN),
            ],
        }
        eventually(lambda: PASSWORD in entries(client, BROKER, "0"))
        eventually(lambda: len(entries(client, BROKER, "")) == len(DEFAULTS))
        result |= {
            "changed broker": _described(ask(client, BROKER, "0", synonyms=True)),
            "defaults": _described(ask(client, BROKER, "", synonyms=True)),
            "topic of changed broker": _described(ask(client, TOPIC, "topic", synonyms=True)),
            "verdicts": list(_verdicts(client)),
        }
    result["znodes"] = {
        path: json.loads(read_znode(zookeeper_connect, f"/config/{path}"))
        for path in ("topics/topic", "brokers/<default>", "brokers/0")
    }
    return result


def _verdicts(client: RawClient) -> Iterator[Verdict]:
    for kind, name, changes in CHANGES:
        yield change(client, kind, name, *changes)
    for kind, name, settings in REPLACEMENTS:
        yield replace(client, kind, name, settings)
    for kind, name in QUESTIONS:
        refused = ask(client, kind, name)
        yield refused.error_code, refused.error_message


def _described(result: DescribeConfigsResult) -> dict[str, Any]:
    return {
        one.name: {
            "value": one.value,
            "read only": one.read_only,
            "source": one.config_source,
            "sensitive": one.is_sensitive,
            "synonyms": [[synonym.name, synonym.value, synonym.source] for synonym in one.synonyms],
        }
        for one in result.configs
    }


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-configs-") as directory,
        apache_kafka(RELEASE).cluster(Path(directory), SETTINGS) as broker,
    ):
        found = answers(broker.port, broker.zookeeper_connect)
    text = json.dumps(found, separators=(",", ":"), sort_keys=True)
    FIXTURE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
