"""Java's console producer and consumer, as they come: the producer of later releases is idempotent
by default, and the consumer joins a group."""

from pathlib import Path

import pytest

from tests.support.apache_kafka import require_apache_kafka
from tests.support.broker import running_broker
from tests.support.kafka_tools import tools

LINES = [f"line {number}" for number in range(500)]


@pytest.mark.parametrize(
    "release", ["2.5.1", pytest.param("3.9.1", marks=pytest.mark.soak), "4.1.0"]
)
def test_what_is_typed_comes_out_again(tmp_path: Path, release: str) -> None:
    kafka = require_apache_kafka(release)
    overrides = {"num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
    with running_broker(tmp_path, overrides) as broker, tools(kafka) as jvm:
        where = ("--broker-list" if release == "2.5.1" else "--bootstrap-server", broker.bootstrap)
        typed = "".join(f"{line}\n" for line in LINES).encode()
        jvm.run("console-producer", *where, "--topic", "castle", stdin=typed)
        read = jvm.run(
            *("console-consumer", "--bootstrap-server", broker.bootstrap, "--topic", "castle"),
            *("--from-beginning", "--max-messages", str(len(LINES))),
        )
        assert sorted(read.splitlines()) == sorted(LINES)
        assert broker.stop() == 0
