"""Apache Kafka itself, for tests: its jars, its ZooKeeper, its broker and its command-line tools.

Owns all that runs Java for Kafka's sake. The jars come from Maven into a cache folder and are never
committed; servers listen on free loopback ports and never outlive the process that started them.
Where Java or Maven is missing, `apache_kafka` raises `KafkaUnavailable`, whose text is the reason
to skip a test; `require_apache_kafka` does that.

    kafka = require_apache_kafka("2.5.1")
    print(kafka.dump_log([segment], "--deep-iteration").output)
    with kafka.cluster(directory) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
"""

import functools
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from broker.java import JavaNotFoundError, find_java
from controller import child_guard
from tests.support.maven import JarsUnavailable, fetched_jars

SCALA_VERSION: Final = "2.13"
# What a binding of slf4j needs beside Kafka's own dependencies, by release.
_LOGGING_JARS: Final = {
    "2.5.1": ("org.slf4j:slf4j-log4j12:1.7.30", "log4j:log4j:1.2.17"),
    "3.9.1": ("org.slf4j:slf4j-reload4j:1.7.36",),
    "4.1.0": ("org.slf4j:slf4j-reload4j:1.7.36",),
}
# Those whose brokers need a ZooKeeper; of later ones only clients and tools are of use here.
RELEASES: Final = ("2.5.1", "3.9.1")

_JVM_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xms64m",
    "-Xmx512m",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.forceSync=no",  # a test's ZooKeeper need not survive a power cut
)
_LOG4J: Final = """\
log4j.rootLogger={level}, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target={target}
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_ZOOKEEPER: Final = """\
dataDir={directory}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
tickTime=1000
admin.enableServer=false
"""
# One broker alone, small and quick to stop.
_BROKER_SETTINGS: Final = {
    "broker.id": "0",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "controlled.shutdown.enable": "false",
    "delete.topic.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.retention.ms": "-1",
    "num.io.threads": "2",
    "num.network.threads": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}

_START_TIMEOUT_SECONDS: Final = 90.0
_STOP_TIMEOUT_SECONDS: Final = 30.0
_TOOL_TIMEOUT_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05
_PORT_ATTEMPTS: Final = 5
_SHOWN_LOG_LINES: Final = 30


class KafkaUnavailable(Exception):
    """Apache Kafka cannot be run here; the text says what is missing."""


class KafkaFailed(AssertionError):
    """A server or tool of Kafka's did not do what it was started for."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a command-line tool printed."""

    output: str
    errors: str


@dataclass(frozen=True, slots=True)
class ApacheKafka:
    """One release, ready to run."""

    version: str
    java: Path
    libraries: Path
    jvm_options: tuple[str, ...] = _JVM_OPTIONS

    def command(self, main_class: str, arguments: Iterable[str], *, log4j: Path) -> list[str]:
        return [
            str(self.java),
            *self.jvm_options,
            f"-Dlog4j.configuration=file:{log4j}",
            "-cp",
            str(self.libraries / "*"),
            main_class,
            *arguments,
        ]

    def run(self, main_class: str, *arguments: str) -> ToolResult:
        """Run a tool to its end; what it logs as a warning or worse counts as an error of it."""
        with tempfile.TemporaryDirectory(prefix="barnabas-kafka-tool-") as directory:
            log4j = write_log4j(Path(directory), level="WARN", target="System.err")
            command = self.command(main_class, arguments, log4j=log4j)
            finished = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TOOL_TIMEOUT_SECONDS,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                check=False,
            )
        result = ToolResult(
            finished.stdout.decode(errors="surrogateescape"),
            finished.stderr.decode(errors="surrogateescape"),
        )
        if finished.returncode != 0:
            raise KafkaFailed(f"{main_class} failed:\n{result.output}\n{result.errors}")
        return result

    def dump_log(self, files: Iterable[Path], *options: str) -> ToolResult:
        """kafka-dump-log over any number of segment, index and snapshot files."""
        names = ",".join(map(str, files))
        return self.run("kafka.tools.DumpLogSegments", "--files", names, *options)

    @contextmanager
    def zookeeper(self, directory: Path) -> Iterator["ZooKeeperServer"]:
        """A ZooKeeper that serves, ended whatever happens."""
        server = ZooKeeperServer(self, directory)
        try:
            server.start()
            yield server
        finally:
            server.stop()

    @contextmanager
    def cluster(
        self, directory: Path, settings: Mapping[str, str] | None = None
    ) -> Iterator["KafkaBroker"]:
        """A ZooKeeper and a broker that serves, both with their files below `directory`."""
        with self.zookeeper(directory / "zookeeper") as zookeeper:
            broker = KafkaBroker(self, directory / "broker", zookeeper.connect, settings)
            try:
                broker.start()
                yield broker
            finally:
                broker.kill()


@dataclass(slots=True)
class JavaServer:
    """A Java process that writes its log to a file and is tied to the life of this process."""

    log_path: Path
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def launch(self, command: Sequence[str]) -> None:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", child_guard.__file__, str(os.getpid()), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_for_line(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """The first line of the log that the pattern is found in, once there is one."""
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while True:
            running = self.is_running
            text = self.log_path.read_text(errors="replace")
            if found := pattern.search(text):
                return found
            if not running or time.monotonic() > deadline:
                tail = "\n".join(text.splitlines()[-_SHOWN_LOG_LINES:])
                raise KafkaFailed(f"{self.log_path} has no {pattern.pattern!r}:\n{tail}")
            time.sleep(_POLL_SECONDS)

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait; a process that does not end is killed and counts as failed."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            status = self._process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise KafkaFailed(f"a server did not end, see {self.log_path}") from None
        finally:
            if self._process.stdin is not None:
                self._process.stdin.close()
        return status


class ZooKeeperServer:
    """The ZooKeeper that a release of Kafka brings along."""

    _READY: Final = re.compile(r"binding to port \S+")
    _PORT_TAKEN: Final = "BindException"

    def __init__(self, kafka: ApacheKafka, directory: Path) -> None:
        self._kafka = kafka
        self._directory = directory
        self._server = JavaServer(directory / "zookeeper.log")
        self.port = 0

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._server.pid

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            self._launch()
            try:
                self._wait_until_connectable()
                return
            except KafkaFailed:
                taken = self._PORT_TAKEN in self._server.log_path.read_text(errors="replace")
                if not taken or not attempts_left:
                    raise

    def _launch(self) -> None:
        self.port = _free_port()
        configuration = self._directory / "zookeeper.properties"
        configuration.write_text(_ZOOKEEPER.format(directory=self._directory, port=self.port))
        log4j = write_log4j(self._directory, level="INFO", target="System.out")
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._server.launch(self._kafka.command(main_class, [str(configuration)], log4j=log4j))

    def _wait_until_connectable(self) -> None:
        self._server.wait_for_line(self._READY)
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while self._server.is_running and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(_POLL_SECONDS)
        raise KafkaFailed(f"ZooKeeper does not answer, see {self._server.log_path}")

    def stop(self) -> None:
        self._server.end(signal.SIGKILL)  # nothing in it is to be kept


class KafkaBroker:
    """A broker; stopped and started again it keeps its data and gets another port."""

    _STARTED: Final = re.compile(r"started \(kafka\.server\.KafkaServer\)")
    _LISTENING: Final = re.compile(r"Awaiting socket connections on \S+:(\d+)\.")

    def __init__(
        self,
        kafka: ApacheKafka,
        directory: Path,
        zookeeper_connect: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.kafka = kafka
        self.directory = directory
        self.zookeeper_connect = zookeeper_connect
        self.settings = {
            **_BROKER_SETTINGS,
            "zookeeper.connect": zookeeper_connect,
            "log.dirs": str(directory / "data"),
            **(settings or {}),
        }
        self.port = 0
        self._server = JavaServer(directory / "server.log")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        """Its first log directory."""
        return Path(self.settings["log.dirs"].split(",")[0])

    @property
    def log_text(self) -> str:
        """What it logged since it was last started."""
        return self._server.log_path.read_text(errors="replace")

    @property
    def pid(self) -> int:
        return self._server.pid

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.launch()
        self._server.wait_for_line(self._STARTED)
        self.port = int(self._server.wait_for_line(self._LISTENING).group(1))

    def launch(self) -> None:
        """Start it and do not wait."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / "server.properties"
        configuration.write_text("".join(f"{k}={v}\n" for k, v in self.settings.items()))
        log4j = write_log4j(self.directory, level="INFO", target="System.out")
        self._server.launch(self.kafka.command("kafka.Kafka", [str(configuration)], log4j=log4j))

    def stop(self) -> None:
        """Stop it cleanly: its logs are flushed, trimmed and marked."""
        self._server.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash does; nothing happens if it has ended already."""
        self._server.end(signal.SIGKILL)


def require_apache_kafka(version: str) -> ApacheKafka:
    """A release ready to run; the calling test is skipped where there can be none."""
    try:
        return apache_kafka(version)
    except KafkaUnavailable as error:
        pytest.skip(str(error))


@functools.cache
def apache_kafka(version: str) -> ApacheKafka:
    """A release ready to run, its jars fetched on first use."""
    try:
        java = find_java().java
    except JavaNotFoundError as error:
        raise KafkaUnavailable(f"Apache Kafka needs Java: {error}") from None
    return ApacheKafka(version, java, _libraries(version))


def _libraries(version: str) -> Path:
    """The folder with a release's jars."""
    artifacts = (
        f"org.apache.kafka:kafka_{SCALA_VERSION}:{version}",
        f"org.apache.kafka:kafka-tools:{version}",
        *_LOGGING_JARS[version],
    )
    try:
        return fetched_jars("apache-kafka", version, artifacts)
    except JarsUnavailable as error:
        raise KafkaUnavailable(str(error)) from None


def write_log4j(directory: Path, *, level: str, target: str) -> Path:
    path = directory / "log4j.properties"
    path.write_text(_LOG4J.format(level=level, target=target))
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
