"""Stock clients that keep fetch sessions read everything in them, also over restarts.

librdkafka and aiokafka ask for no sessions; their own tests cover that path.
"""

import subprocess
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from tests.support.apache_kafka import require_apache_kafka
from tests.support.api import create_topic, produce
from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import RawClient, make_batch

TIMEOUT_SECONDS = 60
PARTITIONS = 5
TOPIC = "told-once"


def write(broker: BrokerProcess, *partitions: int, value: bytes = b"x") -> None:
    with RawClient(broker.port) as client:
        for partition in partitions:
            produce(client, TOPIC, make_batch(value), partition=partition)


def test_kafka_python_reads_in_a_session_and_in_a_new_one_after_a_restart(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        with RawClient(broker.port) as client:
            create_topic(client, TOPIC, PARTITIONS)
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap,
            auto_offset_reset="earliest",
            consumer_timeout_ms=TIMEOUT_SECONDS * 1000,
            fetch_max_wait_ms=100,
        )
        try:
            consumer.assign([TopicPartition(TOPIC, one) for one in range(PARTITIONS)])
            sessions = read_in_turn(broker, consumer)
            assert len(sessions) == 1
            assert broker.stop() == 0
            same_address = {"listeners": f"PLAINTEXT://{broker.bootstrap}"}
            with running_broker(tmp_path, same_address) as restarted:
                sessions |= read_in_turn(restarted, consumer)
            assert len(sessions) == 2
            assert 0 not in sessions
        finally:
            consumer.close()


def read_in_turn(broker: BrokerProcess, consumer: KafkaConsumer) -> set[int]:
    """Read what is written to one partition after the other; the sessions that were used."""
    sessions = set()
    for partition in (0, 3, 0, 4, 1):
        write(broker, partition)
        assert next(consumer).partition == partition
        sessions.add(session_of(consumer))
    return sessions


def session_of(consumer: KafkaConsumer) -> int:
    (handler,) = consumer._fetcher._session_handlers.values()
    session_id: int = handler.next_metadata.session_id
    return session_id


def test_java_consumer_reads_in_a_session(tmp_path: Path) -> None:
    kafka = require_apache_kafka("2.5.1")
    log4j = tmp_path / "log4j.properties"
    log4j.write_text(
        "log4j.rootLogger=WARN, out\n"
        "log4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.target=System.err\n"
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=%m%n\n"
        "log4j.logger.org.apache.kafka.clients.FetchSessionHandler=DEBUG\n"
    )
    with running_broker(tmp_path / "data") as broker:
        with RawClient(broker.port) as client:
            create_topic(client, TOPIC, PARTITIONS)
        write(broker, 2, 2, 2)
        arguments = ["--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--partition", "2"]
        arguments += ["--offset", "earliest", "--max-messages", "6"]
        command = kafka.command("kafka.tools.ConsoleConsumer", arguments, log4j=log4j)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as consumer:
            try:
                assert consumer.stdout is not None
                read = [consumer.stdout.readline() for _ in range(3)]
                write(broker, 0, 2, 2, 2, 1, value=b"later")
                rest, log = consumer.communicate(timeout=TIMEOUT_SECONDS)
            finally:
                consumer.kill()
    assert read == ["x\n"] * 3
    assert rest == "later\n" * 3
    assert "incremental fetch response" in log
    assert "was unable to process" not in log
