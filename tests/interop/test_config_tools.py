"""Stock admin clients and Kafka's own kafka-configs on a real broker."""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka.admin as kafka_python
import pytest

from tests.support.apache_kafka import RELEASES, ApacheKafka, KafkaFailed, require_apache_kafka
from tests.support.api import create_topic
from tests.support.broker import BrokerProcess, running_broker
from tests.support.configs import BROKER, LOGGER, entries, eventually, read_znode, replace
from tests.support.raw_client import RawClient

confluent: Any = importlib.import_module("confluent_kafka.admin")  # its types export nothing

CONNECTING = re.compile(r"Connecting to zookeeper on (\S+)")
TIMEOUT = 30.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"log.segment.bytes": "100000", "password.encoder.secret": "secret"}
    with running_broker(tmp_path_factory.mktemp("data"), settings) as broker:
        yield broker


@pytest.fixture
def topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-zA-Z0-9.-]", "-", request.node.name)
    with RawClient(broker.port) as client:
        create_topic(client, name, retention_ms="60000")
    return name


def stored(broker: BrokerProcess, path: str) -> dict[str, str]:
    connect = broker.wait_for_line(CONNECTING).group(1)
    config: dict[str, str] = json.loads(read_znode(connect, f"/config/{path}"))["config"]
    return config


def broker_value(broker: BrokerProcess, name: str) -> str | None:
    with RawClient(broker.port) as client:
        return entries(client, BROKER, "0", name)[name].value


# -- confluent-kafka -----------------------------------------------------------------------------


def resource(kind: str, name: str, **changes: tuple[str, str | None]) -> Any:
    return confluent.ConfigResource(
        confluent.ResourceType[kind],
        name,
        incremental_configs=[
            confluent.ConfigEntry(
                key.replace("_", "."),
                value,
                incremental_operation=confluent.AlterConfigOpType[operation],
            )
            for key, (operation, value) in changes.items()
        ],
    )


def test_confluent_kafka_describes_and_alters(broker: BrokerProcess, topic: str) -> None:
    admin = confluent.AdminClient({"bootstrap.servers": broker.bootstrap})

    def described(kind: str, name: str) -> dict[str, Any]:
        wanted = confluent.ConfigResource(confluent.ResourceType[kind], name)
        found: dict[str, Any] = admin.describe_configs([wanted])[wanted].result(TIMEOUT)
        return found

    def alter(wanted: Any) -> None:
        admin.incremental_alter_configs([wanted])[wanted].result(TIMEOUT)

    before = described("TOPIC", topic)
    assert before["retention.ms"].value == "60000"
    assert before["segment.bytes"].source == confluent.ConfigSource.STATIC_BROKER_CONFIG.value
    assert [one.name for one in before["retention.ms"].synonyms.values()] == ["retention.ms"]
    alter(
        resource(
            "TOPIC",
            topic,
            retention_ms=("DELETE", None),
            flush_ms=("SET", "5000"),
            cleanup_policy=("APPEND", "compact"),
        )
    )
    assert stored(broker, f"topics/{topic}") == {
        "flush.ms": "5000",
        "cleanup.policy": "delete,compact",
    }
    assert described("BROKER", "0")["num.io.threads"].value == "8"
    alter(resource("BROKER", "0", log_cleaner_backoff_ms=("SET", "14000")))
    eventually(lambda: broker_value(broker, "log.cleaner.backoff.ms") == "14000")
    with pytest.raises(confluent.KafkaException, match="cannot be updated dynamically"):
        alter(resource("BROKER", "0", num_partitions=("SET", "3")))
    replaced = confluent.ConfigResource(confluent.ResourceType.TOPIC, topic)
    replaced.set_config("segment.ms", "70000")
    admin.alter_configs([replaced])[replaced].result(TIMEOUT)
    assert stored(broker, f"topics/{topic}") == {"segment.ms": "70000"}


# -- kafka-python --------------------------------------------------------------------------------


def test_kafka_python_describes_and_alters(broker: BrokerProcess, topic: str) -> None:
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    kinds = kafka_python.ConfigResourceType

    def alter(kind: Any, name: str, configs: dict[str, Any], **options: Any) -> None:
        admin.alter_configs([kafka_python.ConfigResource(kind, name, configs)], **options)

    def described(kind: Any, name: str) -> dict[str, Any]:
        found: dict[str, dict[str, dict[str, Any]]] = admin.describe_configs(
            [kafka_python.ConfigResource(kind, name)], config_filter="all"
        )
        (by_name,) = found.values()
        return by_name[name]

    try:
        before = described(kinds.TOPIC, topic)
        assert before["retention.ms"]["value"] == "60000"
        assert len(before) == 26
        alter(
            kinds.TOPIC,
            topic,
            {"flush.ms": "5000", "retention.ms": ("DELETE", None)},
            incremental=True,
        )
        assert stored(broker, f"topics/{topic}") == {"flush.ms": "5000"}
        alter(kinds.TOPIC, topic, {"segment.ms": "70000"}, incremental=False)
        assert stored(broker, f"topics/{topic}")["segment.ms"] == "70000"
        assert described(kinds.BROKER, "0")["num.network.threads"]["value"] == "3"
        alter(kinds.BROKER, "0", {"log.retention.ms": "123456"})
        eventually(lambda: broker_value(broker, "log.retention.ms") == "123456")
        alter(kinds.BROKER, "0", {"log.retention.ms": ("DELETE", None)})
        eventually(lambda: broker_value(broker, "log.retention.ms") is None)
    finally:
        admin.close()


# -- kafka-configs -------------------------------------------------------------------------------


@pytest.fixture(params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> ApacheKafka:
    return require_apache_kafka(request.param)


class KafkaConfigs:
    """kafka-configs of one release."""

    def __init__(self, kafka: ApacheKafka, *where: str) -> None:
        self._kafka = kafka
        self._where = where

    def __call__(self, *arguments: str) -> str:
        result = self._kafka.run("kafka.admin.ConfigCommand", *self._where, *arguments)
        return result.output

    def alter(self, *entity: str, add: str = "", delete: str = "") -> str:
        changes = [*(("--add-config", add) if add else ())]
        changes += [*(("--delete-config", delete) if delete else ())]
        return self("--alter", *entity, *changes)


def test_kafka_configs_changes_topics(
    kafka: ApacheKafka, broker: BrokerProcess, topic: str
) -> None:
    configs = KafkaConfigs(kafka, "--bootstrap-server", broker.bootstrap)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    configs.alter(
        *entity, add="flush.ms=5000,cleanup.policy=[compact,delete]", delete="retention.ms"
    )
    assert stored(broker, f"topics/{topic}") == {
        "flush.ms": "5000",
        "cleanup.policy": "compact,delete",
    }
    shown = configs("--describe", *entity)
    assert "flush.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:flush.ms=5000}" in shown
    assert "cleanup.policy=compact,delete" in shown


def test_kafka_configs_changes_brokers_and_their_defaults(
    kafka: ApacheKafka, broker: BrokerProcess
) -> None:
    configs = KafkaConfigs(kafka, "--bootstrap-server", broker.bootstrap)
    one = ("--entity-type", "brokers", "--entity-name", "0")
    default = ("--entity-type", "brokers", "--entity-default")
    name = "log.segment.bytes"
    secret = "listener.name.external.ssl.key.password"
    configs.alter(*default, add=f"{name}=200000")
    eventually(lambda: broker_value(broker, name) == "200000")
    configs.alter(*one, add=f"{name}=300000,{secret}=hush")
    eventually(lambda: broker_value(broker, name) == "300000")
    shown = configs("--describe", *one)
    assert f"{name}=300000 sensitive=false" in shown
    assert f"{secret}=null sensitive=true" in shown
    assert "hush" not in json.dumps([shown, stored(broker, "brokers/0"), broker.output])
    configs.alter(*one, delete=f"{name},{secret}")
    eventually(lambda: broker_value(broker, name) == "200000")
    with pytest.raises(KafkaFailed, match=r"num\.partitions"):
        configs.alter(*one, add="num.partitions=3")
    with RawClient(broker.port) as client:
        assert replace(client, BROKER, "", {}) == (0, None)
    eventually(lambda: broker_value(broker, name) == "100000")


def test_kafka_configs_changes_log_levels(kafka: ApacheKafka, broker: BrokerProcess) -> None:
    configs = KafkaConfigs(kafka, "--bootstrap-server", broker.bootstrap)
    entity = ("--entity-type", "broker-loggers", "--entity-name", "0")
    level = "DEBUG" if kafka.version == RELEASES[0] else "TRACE"
    configs.alter(*entity, add=f"broker.server={level}")
    with RawClient(broker.port) as client:
        assert entries(client, LOGGER, "0", "broker.server")["broker.server"].value == level


def test_settings_of_clients_and_users_are_read_where_kafka_configs_writes_them(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    """2.5's tool writes quotas and credentials straight to ZooKeeper; brokers are notified."""
    kafka = require_apache_kafka("2.5.1")
    connect = broker.wait_for_line(CONNECTING).group(1)
    configs = KafkaConfigs(kafka, "--zookeeper", connect)
    quota = "producer_byte_rate=1024"
    configs.alter("--entity-type", "clients", "--entity-name", "a client", add=quota)
    configs.alter("--entity-type", "users", "--entity-default", add=quota)
    one = ("--entity-type", "users", "--entity-name", "k", "--entity-type", "clients")
    configs.alter(*one, "--entity-name", "c", add=quota)
    for path in ("clients/a%20client", "users/<default>", "users/k/clients/c"):
        broker.wait_for_line(re.compile(f"entityPath: {re.escape(path)} "))
        assert stored(broker, path) == {"producer_byte_rate": "1024"}
    assert "producer_byte_rate=1024" in configs("--describe", *one, "--entity-name", "c")
