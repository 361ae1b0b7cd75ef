"""Stock clients over TLS, to a broker that asks every client for a certificate."""

import asyncio
import shutil
import ssl
import subprocess
import uuid
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonTopicPartition

from tests.support.broker import BrokerProcess, running_broker
from tests.support.certificates import TlsFiles, make_tls_files

TIMEOUT_SECONDS = 60
VALUES = [b"value %d " % number * (number % 50 + 1) for number in range(2000)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def broker(files: TlsFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    overrides = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        **files.broker_settings,
    }
    with running_broker(tmp_path_factory.mktemp("data"), overrides) as broker:
        yield broker


def exchange_by_confluent_kafka(broker: BrokerProcess, files: TlsFiles, topic: str) -> list[bytes]:
    common: dict[str, str | int | float | bool] = {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "ssl",
        "ssl.ca.location": str(files.authority),
        "ssl.certificate.location": str(files.client_certificate),
        "ssl.key.location": str(files.client_key),
    }
    producer = Producer(common)
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    consumer = Consumer({**common, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    received: list[bytes] = []
    try:
        while len(received) < len(VALUES):
            messages = consumer.consume(len(VALUES) - len(received), TIMEOUT_SECONDS)
            assert messages, "nothing came within the time"
            for message in messages:
                content = message.value()
                assert isinstance(content, bytes)
                received.append(content)
    finally:
        consumer.close()
    return received


def exchange_by_kafka_python(broker: BrokerProcess, files: TlsFiles, topic: str) -> list[bytes]:
    common = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": str(files.authority),
        "ssl_certfile": str(files.client_certificate),
        "ssl_keyfile": str(files.client_key),
    }
    producer = KafkaProducer(**common, enable_idempotence=False)
    try:
        sent = [producer.send(topic, value, partition=0) for value in VALUES]
        for one in sent:
            one.get(TIMEOUT_SECONDS)
    finally:
        producer.close()
    consumer = KafkaConsumer(**common, auto_offset_reset="earliest", enable_auto_commit=False)
    received: list[bytes] = []
    try:
        consumer.assign([PythonTopicPartition(topic, 0)])
        while len(received) < len(VALUES):
            polled = consumer.poll(timeout_ms=TIMEOUT_SECONDS * 1000)
            assert polled, "nothing came within the time"
            received += [record.value for records in polled.values() for record in records]
    finally:
        consumer.close()
    return received


def exchange_by_aiokafka(broker: BrokerProcess, files: TlsFiles, topic: str) -> list[bytes]:
    return asyncio.run(asyncio.wait_for(_by_aiokafka(broker, files, topic), TIMEOUT_SECONDS))


async def _by_aiokafka(broker: BrokerProcess, files: TlsFiles, topic: str) -> list[bytes]:
    context = ssl.create_default_context(cafile=str(files.authority))
    context.load_cert_chain(files.client_certificate, files.client_key)
    common = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    producer = AIOKafkaProducer(**common)
    await producer.start()
    try:
        sent = [await producer.send(topic, value, partition=0) for value in VALUES]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(**common, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([AioTopicPartition(topic, 0)])
    await consumer.start()
    try:
        return [(await consumer.getone()).value for _ in VALUES]
    finally:
        await consumer.stop()


def exchange_by_kcat(broker: BrokerProcess, files: TlsFiles, topic: str) -> list[bytes]:
    secured = {
        "security.protocol": "ssl",
        "ssl.ca.location": files.authority,
        "ssl.certificate.location": files.client_certificate,
        "ssl.key.location": files.client_key,
    }
    options = [text for name, value in secured.items() for text in ("-X", f"{name}={value}")]
    base = ["kcat", "-b", broker.bootstrap, "-t", topic, "-p", "0", *options]
    run_kcat([*base, "-P"], b"".join(value + b"\n" for value in VALUES))
    printed = run_kcat([*base, "-C", "-q", "-e", "-o", "beginning", "-c", str(len(VALUES))], b"")
    return printed.removesuffix(b"\n").split(b"\n")


def run_kcat(command: list[str], data: bytes) -> bytes:
    done = subprocess.run(
        command, input=data, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize(
    "exchange",
    [
        exchange_by_confluent_kafka,
        exchange_by_kafka_python,
        exchange_by_aiokafka,
        pytest.param(
            exchange_by_kcat,
            marks=pytest.mark.skipif(
                shutil.which("kcat") is None, reason="kcat is not installed (Debian's package kcat)"
            ),
        ),
    ],
)
def test_a_client_with_a_certificate_produces_and_consumes(
    broker: BrokerProcess,
    files: TlsFiles,
    exchange: Callable[[BrokerProcess, TlsFiles, str], list[bytes]],
) -> None:
    assert exchange(broker, files, f"topic-{uuid.uuid4()}") == VALUES


def test_a_client_without_certificate_gets_nowhere(broker: BrokerProcess, files: TlsFiles) -> None:
    failures: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "ssl",
            "ssl.ca.location": str(files.authority),
            "message.timeout.ms": 2000,
        }
    )
    producer.produce("refused", b"x", on_delivery=lambda error, _message: failures.append(error))
    producer.flush(TIMEOUT_SECONDS)
    assert failures
    assert failures[0] is not None
