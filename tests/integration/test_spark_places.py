"""The sources where the project is not installed: on a standalone cluster whose Python has the
documented packages and the archive, and on each PySpark from the oldest that is promised on."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analytics.archive import write_archive
from broker.java import find_java, spark_java_home
from tests.fidelity.fixture_logs import data_directory, fixture_logs
from tests.support.spark_places import python_with_spark, run_script, spark_cluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

RELEASE = "3.9.1"
SCRIPT = Path(__file__).with_name("spark_script.py")
CLUSTER_SPARK = "4.3.0"
MOST_PER_TRIGGER = 100  # as the script has it
SPARKS = ("4.1.0",) if os.environ.get("BARNABAS_SOAK") == "short" else ("4.1.0", "4.2.0", "4.3.0")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    target = tmp_path / "barnabas.zip"
    write_archive(target)
    return target


def check(result: dict[str, Any]) -> None:
    """The rows are those that a consumer read."""
    expected: Counter[str] = Counter()
    for log in fixture_logs():
        if log.release == RELEASE:
            expected[log.topic] += len(log.consumed("read_committed"))
    assert result["committed"] == dict(expected)
    (sent,) = (log for log in fixture_logs() if (log.release, log.topic) == (RELEASE, "sent-zstd"))
    assert result["filtered"] == sum(record.offset >= 100 for record in sent.consumed())
    assert sum(result["streamed"]) == len(sent.consumed())
    assert max(result["streamed"]) <= MOST_PER_TRIGGER
    assert result["batches"] > 0
    assert result["problems"] == 0


def test_a_cluster_reads_with_the_archive_and_the_documented_packages_alone(
    tmp_path: Path, archive: Path
) -> None:
    python = python_with_spark(CLUSTER_SPARK)
    with spark_cluster(tmp_path, python) as cluster:
        output = cluster.submit(SCRIPT, archive, str(data_directory(RELEASE)), "register")
    result = json.loads(output.splitlines()[-1])
    check(result)
    pythons, homes, folders = zip(*result["workers"], strict=True)
    assert set(pythons) == {str(python)}
    assert all(home.endswith("barnabas.zip") for home in homes)
    assert str(archive) not in homes, "executors have it from Spark, not from the driver's disk"
    executors = {Path(folder).relative_to(tmp_path).parts[0] for folder in folders}
    assert executors == {"work-0", "work-1"}


@pytest.mark.parametrize("version", SPARKS)
def test_every_promised_spark_finds_the_sources_and_reads_alike(
    tmp_path: Path, archive: Path, version: str
) -> None:
    java_home = spark_java_home(find_java(), tmp_path / "java")
    environment = {"PYTHONPATH": str(archive), "JAVA_HOME": str(java_home)}
    arguments = [str(data_directory(RELEASE)), "discover"]
    output = run_script(SCRIPT, python_with_spark(version), arguments, environment)
    result = json.loads(output.splitlines()[-1])
    check(result)
    assert result["version"] == version
