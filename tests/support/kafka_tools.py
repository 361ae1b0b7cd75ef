"""Kafka's command-line tools, many calls in one JVM: a call costs a fraction of a second then.

with tools(require_apache_kafka("2.5.1")) as kafka:
    print(kafka.run("topics", "--bootstrap-server", bootstrap, "--list"))
"""

import base64
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.apache_kafka import ApacheKafka, KafkaFailed, ToolResult, write_log4j

_SERVER: Final = Path(__file__).with_name("ToolServer.java")
_OF_LATER_RELEASES: Final = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
_MAIN_CLASSES: Final[Mapping[str, Mapping[str, str]]] = {
    "2.5.1": {
        "topics": "kafka.admin.TopicCommand",
        "configs": "kafka.admin.ConfigCommand",
        "reassign-partitions": "kafka.admin.ReassignPartitionsCommand",
        "leader-election": "kafka.admin.LeaderElectionCommand",
        "delete-records": "kafka.admin.DeleteRecordsCommand",
        "log-dirs": "kafka.admin.LogDirsCommand",
        "console-producer": "kafka.tools.ConsoleProducer",
        "console-consumer": "kafka.tools.ConsoleConsumer",
    },
    "3.9.1": _OF_LATER_RELEASES,
    "4.1.0": {**_OF_LATER_RELEASES, "console-producer": "org.apache.kafka.tools.ConsoleProducer"},
}


class KafkaTools:
    """A JVM that runs tools of one release, one after the other."""

    def __init__(self, kafka: ApacheKafka, process: "subprocess.Popen[bytes]") -> None:
        self.version = kafka.version
        self._process = process

    def run(self, tool: str, *arguments: str, stdin: bytes = b"") -> str:
        """What a tool (`topics` is kafka-topics) prints; it must succeed."""
        status, result = self.attempt(tool, *arguments, stdin=stdin)
        if status != 0:
            raise KafkaFailed(
                f"kafka-{tool} {self.version} {arguments}: {result.output}\n{result.errors}"
            )
        return result.output

    def attempt(self, tool: str, *arguments: str, stdin: bytes = b"") -> tuple[int, ToolResult]:
        """A tool's exit status and what it prints."""
        main_class = _MAIN_CLASSES[self.version][tool]
        words = [stdin, main_class.encode(), *(one.encode() for one in arguments)]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\t".join(map(base64.b64encode, words)) + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise KafkaFailed(f"the JVM ended during kafka-{tool} {arguments}")
        status, output, errors = answer.rstrip(b"\n").split(b"\t")
        result = ToolResult(base64.b64decode(output).decode(), base64.b64decode(errors).decode())
        return int(status), result


@contextmanager
def tools(kafka: ApacheKafka) -> Iterator[KafkaTools]:
    """A JVM for tools, ended whatever happens."""
    with tempfile.TemporaryDirectory(prefix="barnabas-kafka-tools-") as directory:
        log4j = write_log4j(Path(directory), level="ERROR", target="System.err")
        with (Path(directory) / "log").open("wb") as log:
            process = subprocess.Popen(
                kafka.command(str(_SERVER), (), log4j=log4j),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        try:
            yield KafkaTools(kafka, process)
        finally:
            process.kill()
            process.communicate()
