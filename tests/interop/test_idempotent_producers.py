"""Idempotent producers whose answers get lost, and whose broker dies: each record is there once."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from tests.support.apache_kafka import require_apache_kafka
from tests.support.api import create_topic, fetch, values
from tests.support.broker import BrokerProcess
from tests.support.kafka_tools import tools
from tests.support.lossy_proxy import LossyProxy
from tests.support.raw_client import RawClient

TOPIC = "once"
RECORDS = [b"record %d" % number for number in range(600)]
LOSE_EVERY = 5
LOSSES = 8
# At these losses the broker is killed as well, after it has appended.
KILLED_AT = (3, 6)
TIMEOUT_SECONDS = 60.0


@contextlib.contextmanager
def dying_broker(data: Path) -> Iterator[tuple[BrokerProcess, LossyProxy]]:
    """A broker behind a proxy that loses answers, and that has it killed and started again."""
    brokers: list[BrokerProcess] = []

    def kill_and_restart(loss: int) -> None:
        if loss in KILLED_AT:
            brokers[0].kill()
            brokers[0].start()

    with LossyProxy(lambda: brokers[0].port, LOSE_EVERY, LOSSES, kill_and_restart) as proxy:
        overrides = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        with BrokerProcess(data, overrides) as broker:
            brokers.append(broker)
            with RawClient(broker.port) as client:
                create_topic(client, TOPIC)
            yield broker, proxy


def produce_with_librdkafka(bootstrap: str) -> None:
    failures: list[object] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 5}
    )
    for value in RECORDS:
        producer.produce(
            TOPIC,
            value=value,
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert failures == []


def produce_with_kafka_python(bootstrap: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, batch_size=100, acks="all"
    )
    try:
        sent = [producer.send(TOPIC, value=value) for value in RECORDS]
        producer.flush(TIMEOUT_SECONDS)
        for one in sent:
            one.get(timeout=TIMEOUT_SECONDS)
    finally:
        producer.close(TIMEOUT_SECONDS)


def read_everything(broker: BrokerProcess) -> list[bytes | None]:
    with RawClient(broker.port) as client:
        found: list[bytes | None] = []
        while more := values(fetch(client, TOPIC, len(found))):
            found += more
        return found


@pytest.mark.parametrize(
    "produce",
    [produce_with_librdkafka, pytest.param(produce_with_kafka_python, marks=pytest.mark.soak)],
)
def test_records_whose_answers_are_lost_are_there_once_and_in_order(
    tmp_path: Path, produce: Callable[[str], None]
) -> None:
    with dying_broker(tmp_path) as (broker, proxy):
        produce(f"127.0.0.1:{proxy.port}")
        assert proxy.lost == LOSSES
        assert read_everything(broker) == RECORDS


@pytest.mark.parametrize("release", [pytest.param("3.9.1", marks=pytest.mark.soak), "4.1.0"])
def test_javas_producer_with_its_default_settings_writes_records_once(
    tmp_path: Path, release: str
) -> None:
    kafka = require_apache_kafka(release)
    with dying_broker(tmp_path) as (broker, proxy), tools(kafka) as jvm:
        jvm.run(
            *("console-producer", "--bootstrap-server", f"127.0.0.1:{proxy.port}"),
            *("--topic", TOPIC, "--message-send-max-retries", "1000"),
            *("--max-partition-memory-bytes", "100"),
            stdin=b"".join(value + b"\n" for value in RECORDS),
        )
        assert proxy.lost == LOSSES
        assert read_everything(broker) == RECORDS
