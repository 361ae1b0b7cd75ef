"""Logs that lie in a real HDFS, read as their copies on the local disk."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.fidelity.fixture_logs import data_directory
from tests.support.hdfs import Hdfs, require_hdfs, running_hdfs
from tests.unit.analytics.logs import write_log

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

PROJECT = Path(__file__).resolve().parents[2]
LOCAL = data_directory("3.9.1")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS with a broker's log directory in it, under /logs."""
    jars = require_hdfs()
    with running_hdfs(tmp_path_factory.mktemp("hdfs"), jars) as hdfs:
        hdfs.shell("-put", "-t", "16", LOCAL, "/logs")  # files one by one wait for their blocks
        yield hdfs


def load(spark: SparkSession, place: object, table: str, **options: str) -> DataFrame:
    return spark.read.format(table).options(**options).load(str(place))


def rows(spark: SparkSession, place: object, table: str, **options: str) -> list[str]:
    """A table's rows, with names of files as if they lay in the same place."""
    found = load(spark, place, table, **options).collect()
    return sorted(str(row).replace(str(place), "") for row in found)


def offsets(spark: SparkSession, place: str) -> list[int]:
    return sorted(row.offset for row in load(spark, place, "barnabas").collect())


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("barnabas", {"includeHeaders": "true"}),
        ("barnabas", {"isolationLevel": "read_committed", "maxBytesPerTask": "3000"}),
        ("barnabas-batches", {}),
    ],
)
def test_rows_are_those_of_the_local_copy(
    spark: SparkSession, hdfs: Hdfs, table: str, options: dict[str, str]
) -> None:
    expected = rows(spark, LOCAL, table, **options)
    assert len(expected) > 100
    assert rows(spark, f"{hdfs.uri}/logs", table, **options) == expected


def test_a_folder_may_have_any_name(spark: SparkSession, hdfs: Hdfs, tmp_path: Path) -> None:
    write_log(tmp_path / "cluster", 300).close()
    for name in ("sp ace", "100%25", "ü-日本", "a#b", "a+b&c=d;"):
        folder = tmp_path / name
        (tmp_path / "cluster").rename(folder)
        hdfs.shell("-put", folder.as_uri(), "/")
        folder.rename(tmp_path / "cluster")
        assert offsets(spark, f"{hdfs.uri}/{name}") == list(range(300))


def test_a_file_that_is_still_written_is_as_long_as_the_name_node_says(
    spark: SparkSession, hdfs: Hdfs, tmp_path: Path
) -> None:
    write_log(tmp_path, 500).close()
    *written, last = sorted((tmp_path / "topic-0").glob("*.log"))
    hdfs.shell("-mkdir", "-p", "/live/topic-0")
    hdfs.shell("-put", *written, "/live/topic-0")
    with hdfs.writer(f"/live/topic-0/{last.name}", last.read_bytes()):
        assert offsets(spark, f"{hdfs.uri}/live") == list(range(int(last.stem)))
    assert offsets(spark, f"{hdfs.uri}/live") == list(range(500))


def test_the_command_says_of_hdfs_what_it_says_of_the_local_copy(
    hdfs: Hdfs, tmp_path: Path
) -> None:
    local = analyze(LOCAL, tmp_path)
    remote = analyze(f"{hdfs.uri}/logs", tmp_path)
    assert (remote.returncode, remote.stdout, remote.stderr) == (0, local.stdout, "")


def test_the_name_node_of_hadoops_own_settings_needs_no_name(hdfs: Hdfs, tmp_path: Path) -> None:
    settings = {"HADOOP_CONF_DIR": str(hdfs.configuration)}
    place = "hdfs:///logs/meta.properties"
    line = refusal(place, tmp_path, **settings)
    assert line == f"{place}: is not a directory; name a log directory"


def test_what_cannot_be_read_is_one_line_that_says_why(hdfs: Hdfs, tmp_path: Path) -> None:
    hdfs.shell("-mkdir", "-p", "/closed/logs")
    hdfs.shell("-chmod", "700", "/closed")
    place = f"{hdfs.uri}/nothing"
    assert refusal(place, tmp_path) == f"{place}: there is no such directory; name a log directory"
    place = f"{hdfs.uri}/logs/meta.properties"
    assert refusal(place, tmp_path) == f"{place}: is not a directory; name a log directory"
    for place in (f"{hdfs.uri}/closed", f"{hdfs.uri}/closed/logs?user=eve"):
        line = refusal(place, tmp_path, HADOOP_USER_NAME="eve")
        assert line == f"{place}: cannot be read: [Errno 13] Permission denied"
    place = f"hdfs://127.0.0.1:{unused_port()}/logs"
    assert (
        refusal(place, tmp_path) == f"{place}: cannot be read: ConnectException: Connection refused"
    )
    place = "hdfs://nowhere.invalid/logs"
    reason = "UnknownHostException: nowhere.invalid"
    assert refusal(place, tmp_path) == f"{place}: cannot be read: {reason}"
    place = f"{hdfs.uri}/logs"
    reason = "the CLASSPATH has no Hadoop client in it"
    assert refusal(place, tmp_path, CLASSPATH="") == f"{place}: cannot be read: {reason}"


def refusal(place: str, tmp_path: Path, **environment: str) -> str:
    finished = analyze(place, tmp_path, **environment)
    assert (finished.returncode, finished.stdout) == (1, "")
    (line,) = finished.stderr.splitlines()
    return line


def analyze(place: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "broker", "analyze", str(place)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
    )


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: Any = probe.getsockname()[1]
        return int(port)
