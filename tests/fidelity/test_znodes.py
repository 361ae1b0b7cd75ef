"""What administration leaves in ZooKeeper, compared with what Apache Kafka 2.5.1 left there.

scripts/make_znode_fixtures.py has captured the latter.
"""

import json
from pathlib import Path
from typing import Any

from tests.fidelity.znode_steps import SETTINGS, changes, take_steps
from tests.support.broker import running_broker
from tests.support.raw_client import RawClient
from tests.support.zookeeper import private_chroot

CAPTURED = Path(__file__).parents[1] / "fixtures" / "znodes-2.5.1.json"


def test_every_step_leaves_the_znodes_that_kafka_leaves(tmp_path: Path) -> None:
    expected: dict[str, dict[str, Any]] = json.loads(CAPTURED.read_text())
    connect = private_chroot()
    settings = {**SETTINGS, "zookeeper.connect": connect}
    with running_broker(tmp_path, settings) as broker, RawClient(broker.port) as client:
        found = changes(take_steps(client, connect))
    assert list(found) == list(expected)
    for step, left in expected.items():
        assert found[step] == left, step
        for path, value in left["changed"].items():
            if isinstance(value, dict):
                assert list(found[step]["changed"][path]) == list(value), path
