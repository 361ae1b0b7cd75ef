"""Makes tests/fixtures/znodes-2.5.1.json anew: what Apache Kafka keeps in ZooKeeper.

    .venv/bin/python -m scripts.make_znode_fixtures

Needs Java and Maven. tests/fidelity/znode_steps.py tells which steps are taken.
"""

import json
import tempfile
from pathlib import Path

from tests.fidelity.znode_steps import SETTINGS, changes, take_steps
from tests.support.apache_kafka import apache_kafka
from tests.support.raw_client import RawClient

RELEASE = "2.5.1"
FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures"


def make() -> None:
    target = FIXTURES / f"znodes-{RELEASE}.json"
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-znodes-") as directory,
        apache_kafka(RELEASE).cluster(Path(directory), SETTINGS) as broker,
        RawClient(broker.port) as client,
    ):
        steps = changes(take_steps(client, broker.zookeeper_connect))
    target.write_text(json.dumps(steps, indent=1) + "\n")
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    make()
