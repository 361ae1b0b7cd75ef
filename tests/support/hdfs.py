"""A real HDFS on loopback, for tests: the NameNode and DataNode of Apache Hadoop's mini cluster, in
one Java process, and Hadoop's file system shell to fill it.

The jars come from Maven; libhdfs, through which PyArrow reads, comes from no registry: it is part
of Hadoop's distributions. Where ARROW_LIBHDFS_DIR or HADOOP_HOME leads to none, `require_hdfs`
skips the calling test.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from broker.java import JavaNotFoundError, find_java
from tests.support.apache_kafka import JavaServer, write_log4j
from tests.support.maven import JarsUnavailable, fetched_jars

HADOOP_VERSION: Final = "3.4.1"
_ARTIFACTS: Final = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP_VERSION}",
    "org.slf4j:slf4j-reload4j:1.7.36",
)
_CLUSTER: Final = "org.apache.hadoop.test.MiniDFSClusterManager"
_SHELL: Final = "org.apache.hadoop.fs.FsShell"
_STARTED: Final = re.compile(r"Started MiniDFSCluster -- namenode on port (\d+)")
_JVM_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx256m",
    "-Djava.net.preferIPv4Stack=true",
)
_DEFAULT_FILE_SYSTEM: Final = (
    "<configuration><property><name>fs.defaultFS</name><value>{}</value></property></configuration>"
)
_SHELL_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Hdfs:
    """An HDFS that serves, whose client settings lie in a folder."""

    uri: str
    configuration: Path
    java: tuple[str, ...]
    server: JavaServer

    def shell(self, *arguments: str | Path) -> None:
        """`hdfs dfs ARGUMENTS`"""
        subprocess.run(
            self._shell_command(*arguments),
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=_SHELL_SECONDS,
        )

    @contextmanager
    def writer(self, path: str, data: bytes) -> Iterator[None]:
        """A file that has these bytes written to it and is still being written."""
        command = self._shell_command("-appendToFile", "-", path)
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            try:
                process.stdin.write(data)
                process.stdin.flush()
                self.server.wait_for_line(re.compile(rf"cmd=(create|append)\s+src={path}\s"))
                yield
                process.stdin.close()
                assert process.wait(_SHELL_SECONDS) == 0
            finally:
                process.kill()

    def _shell_command(self, *arguments: str | Path) -> list[str]:
        return [*self.java, _SHELL, *map(str, arguments)]


def require_hdfs() -> Path:
    """The mini cluster's jars; the calling test is skipped where they or libhdfs are missing."""
    if not any((folder / "libhdfs.so").exists() for folder in _libhdfs_folders()):
        pytest.skip(
            "ARROW_LIBHDFS_DIR or HADOOP_HOME must lead to a libhdfs.so, which is part of Hadoop's"
            " distributions and comes from no package registry"
        )
    try:
        find_java()
        return fetched_jars("apache-hadoop", HADOOP_VERSION, _ARTIFACTS)
    except (JarsUnavailable, JavaNotFoundError) as error:
        pytest.skip(str(error))


def _libhdfs_folders() -> Iterator[Path]:
    if folder := os.environ.get("ARROW_LIBHDFS_DIR"):
        yield Path(folder)
    if home := os.environ.get("HADOOP_HOME"):
        yield Path(home) / "lib" / "native"


@contextmanager
def running_hdfs(directory: Path, jars: Path) -> Iterator[Hdfs]:
    """An empty HDFS, ended whatever happens."""
    server = JavaServer(directory / "hdfs.log")
    log4j = write_log4j(directory, level="INFO", target="System.out")
    data = directory / "data"
    java = (str(find_java().java), *_JVM_OPTIONS)
    try:
        server.launch(
            [
                *java, f"-Dlog4j.configuration=file:{log4j}", f"-Dtest.build.data={data}",
                "-cp", str(jars / "*"), _CLUSTER, "-format", "-datanodes", "1",
                "-D", f"hdfs.minidfs.basedir={data}",
            ]
        )  # fmt: skip
        uri = f"hdfs://127.0.0.1:{server.wait_for_line(_STARTED).group(1)}"
        configuration = directory / "configuration"
        configuration.mkdir()
        (configuration / "core-site.xml").write_text(_DEFAULT_FILE_SYSTEM.format(uri))
        write_log4j(configuration, level="ERROR", target="System.err")
        yield Hdfs(uri, configuration, (*java, "-cp", f"{configuration}:{jars}/*"), server)
    finally:
        server.end(signal.SIGKILL)  # nothing in it is to be kept
