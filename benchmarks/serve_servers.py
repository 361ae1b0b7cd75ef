"""The brokers that are measured: Barnabas, and Apache Kafka as it comes, each with its ZooKeeper.

Owns their start (timed), their processes and what these cost; knows nothing of the load.
"""

import dataclasses
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from network.protocol import ApiKey, decode_response, encode_request
from network.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.apache_kafka import KafkaBroker, ZooKeeperServer, apache_kafka
from tests.support.broker import BrokerProcess

KAFKA_RELEASE = "3.9.1"
START_TIMEOUT_SECONDS = 90.0
METADATA_VERSION = 5

# What Kafka's own start scripts hand to the JVM.
KAFKA_PERFORMANCE_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
KAFKA_HEAP = ("-Xmx1G", "-Xms1G")
ZOOKEEPER_HEAP = ("-Xmx512M", "-Xms512M")

# Kafka's defaults, where the tests' own cluster is smaller.
KAFKA_DEFAULTS = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "log.cleaner.backoff.ms": "15000",
    "log.cleaner.dedupe.buffer.size": "134217728",
    "log.retention.ms": "604800000",
}


def cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def resident_megabytes(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss) / 1e6


class Server(ABC):
    """A broker under measurement."""

    name: str
    port: int
    pid: int
    zookeeper_pid: int
    start_seconds: float

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @abstractmethod
    def start(self) -> None:
        """Start it on empty directories, and take the time until it answers."""

    @abstractmethod
    def end(self) -> None: ...


class Barnabas(Server):
    """This project's broker, with the ZooKeeper that it brings along."""

    name = "Barnabas"

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._broker = BrokerProcess(directory, {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}"})

    def start(self) -> None:
        started = time.monotonic()
        self._broker.launch()
        wait_until_serving(self.port)
        self.start_seconds = time.monotonic() - started
        self.pid = self._broker.pid
        (self.zookeeper_pid,) = (one.pid for one in psutil.Process(self.pid).children())

    def end(self) -> None:
        self._broker.kill()


class Kafka(Server):
    """Apache Kafka in ZooKeeper mode with its own default settings."""

    name = "Kafka"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        kafka = apache_kafka(KAFKA_RELEASE)
        self._kafka = dataclasses.replace(
            kafka, jvm_options=(*KAFKA_HEAP, *KAFKA_PERFORMANCE_OPTIONS)
        )
        for_zookeeper = dataclasses.replace(
            kafka, jvm_options=(*ZOOKEEPER_HEAP, *KAFKA_PERFORMANCE_OPTIONS)
        )
        self._zookeeper = ZooKeeperServer(for_zookeeper, directory / "zookeeper")
        self._broker: KafkaBroker | None = None

    def start(self) -> None:
        self.port = free_port()
        started = time.monotonic()
        self._zookeeper.start()
        self._broker = KafkaBroker(
            self._kafka,
            self._directory / "broker",
            self._zookeeper.connect,
            {**KAFKA_DEFAULTS, "listeners": f"PLAINTEXT://{self.bootstrap}"},
        )
        self._broker.launch()
        wait_until_serving(self.port)
        self.start_seconds = time.monotonic() - started
        self.pid = self._broker.pid
        self.zookeeper_pid = self._zookeeper.pid

    def end(self) -> None:
        if self._broker is not None:
            self._broker.kill()
        self._zookeeper.stop()


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """A server that serves, ended whatever happens."""
    try:
        server.start()
        yield server
    finally:
        server.end()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def wait_until_serving(port: int) -> None:
    """Until the broker answers, and knows itself and a controller."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            answer = ask_for_metadata(port)
            if answer.brokers and answer.controller_id >= 0:
                return
        except OSError:
            pass
        time.sleep(0.005)
    raise TimeoutError(f"nobody answers on port {port}")


def ask_for_metadata(port: int) -> MetadataResponse:
    question = encode_request(ApiKey.METADATA, METADATA_VERSION, 1, MetadataRequest(), "bench")
    with socket.create_connection(("127.0.0.1", port), START_TIMEOUT_SECONDS) as connection:
        connection.sendall(b"".join(question))
        with connection.makefile("rb") as answers:
            size = int.from_bytes(answers.read(4), "big")
            frame = memoryview(answers.read(size))
    _, response = decode_response(ApiKey.METADATA, METADATA_VERSION, frame)
    assert isinstance(response, MetadataResponse)
    return response
