"""Where replicas go, held against Apache Kafka 2.5.1's own code from the same starting points."""

import itertools
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from controller.assignment import BrokerRack, assign_replicas
from tests.support.apache_kafka import require_apache_kafka

RACKS: list[list[str | None]] = [
    [None],
    [None] * 5,
    ["a", "b", "c"],
    ["a", "c", "c", "b", "b", "a"],
    ["a", "a", "a", "b"],
    ["d", "c", "b", "a", "a", "b", "c"],
]
STARTS = (0, 1, 4)
FIRST_PARTITIONS = (0, 3)
PARTITIONS = 25
JSHELL_SECONDS = 120

QUESTION = """
import kafka.admin.*;
import scala.jdk.javaapi.CollectionConverters;
void ask(String racks, int replicas, int start, int first) {
    var brokers = new ArrayList<BrokerMetadata>();
    for (String rack : racks.split(",")) {
        scala.Option<String> known = scala.Option.apply(rack.equals("-") ? null : rack);
        brokers.add(new BrokerMetadata(brokers.size(), known));
    }
    var answer = AdminUtils.assignReplicasToBrokers(
        CollectionConverters.asScala(brokers), %d, replicas, start, first);
    var text = new StringBuilder();
    CollectionConverters.asJava(answer).forEach((partition, chosen) ->
        text.append(",\\"" + partition + "\\":[" + chosen.mkString(",") + "]"));
    System.out.println("{" + text.substring(1) + "}");
}
"""


def questions() -> list[tuple[list[str | None], int, int, int]]:
    return [
        (racks, replicas, start % len(racks), first)
        for racks, start, first in itertools.product(RACKS, STARTS, FIRST_PARTITIONS)
        for replicas in range(1, len(racks) + 1)
    ]


def test_replicas_are_spread_exactly_as_kafka_spreads_them(tmp_path: Path) -> None:
    kafka = require_apache_kafka("2.5.1")
    jshell = shutil.which("jshell")
    if jshell is None:
        pytest.skip("no jshell, which comes with a JDK")
    asked = " ".join(
        f'ask("{",".join(rack or "-" for rack in racks)}", {replicas}, {start}, {first});'
        for racks, replicas, start, first in questions()
    )
    script = QUESTION % PARTITIONS + f"if (true) {{ {asked} }}\n/exit\n"  # evaluated as one
    (tmp_path / "ask.jsh").write_text(script)
    answered = subprocess.run(
        [jshell, "--class-path", f"{kafka.libraries}/*", "--feedback", "silent", "ask.jsh"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=JSHELL_SECONDS,
        check=True,
    )
    answers = [json.loads(line) for line in answered.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(questions()), answered.stdout
    for (racks, replicas, start, first), answer in zip(questions(), answers, strict=True):
        brokers = [BrokerRack(number, rack) for number, rack in enumerate(racks)]
        ours = assign_replicas(
            brokers, PARTITIONS, replicas, start_index=start, first_partition=first
        )
        assert ours == {int(number): tuple(chosen) for number, chosen in answer.items()}
