"""Other Sparks than the one in this environment: releases in virtual environments of their own, and
a standalone cluster, a master and workers on loopback from PySpark's own jars.

Owns the environments, which lie in the cache folder, and the cluster's processes. The project is in
none of the environments: their Python has the packages that the documentation names, and whatever
archive it is given.
"""

import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.java import find_java, spark_java_home
from tests.support.apache_kafka import JavaServer
from tests.support.maven import cache_directory

# What docs/analytics-internals.md says that executors need, beside PySpark.
EXECUTOR_PACKAGES: Final = (
    "cramjam", "crc32c", "lz4", "numba", "numpy", "pyarrow", "python-snappy", "zstandard",
)  # fmt: skip

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_MASTER_STARTED: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_STARTED: Final = re.compile(r"Successfully registered with master")
_MODULES: Final = (
    "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.net", "java.base/java.nio",
    "java.base/java.util", "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic", "java.base/sun.nio.ch", "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar", "java.base/jdk.internal.ref",
)  # fmt: skip
_RUN_SECONDS: Final = 400.0


def python_with(name: str, *packages: str) -> Path:
    """The interpreter of a virtual environment that has these packages; made once."""
    home = cache_directory() / name
    python = home / "bin" / "python"
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
            install = [str(python), "-m", "pip", "install", "-q", *packages]
            subprocess.run(install, check=True, timeout=_RUN_SECONDS)
            (home / "complete").touch()
    return python


def python_with_spark(version: str) -> Path:
    """An interpreter that has this PySpark and what the documentation says that it needs."""
    return python_with(f"spark-{version}", f"pyspark=={version}", *EXECUTOR_PACKAGES)


def spark_home(python: Path) -> Path:
    """Where the PySpark of an interpreter lies."""
    found = subprocess.run(
        [str(python), "-c", "import pyspark; print(pyspark.__path__[0])"],
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(found.stdout.strip())


def run_script(
    script: Path, python: Path, arguments: Sequence[str], environment: Mapping[str, str]
) -> str:
    """Run a script to its end; what it printed. Its folder is not on its path."""
    finished = subprocess.run(
        [str(python), "-P", str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=_RUN_SECONDS,
        env={**_clean_environment(python), **environment},
        cwd=script.parent,
    )
    assert finished.returncode == 0, finished.stderr[-6000:]
    return finished.stdout


def _clean_environment(python: Path) -> dict[str, str]:
    """This environment without what would lead a Spark elsewhere."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_")) and name != "PYTHONPATH"
    }
    local = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(spark_home(python)),
        "SPARK_SCALA_VERSION": "2.13",  # as Spark's start scripts say to its workers
    }
    return {**kept, **local, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A standalone cluster that serves."""

    url: str
    python: Path
    java_home: Path

    def submit(self, script: Path, archive: Path, *arguments: str) -> str:
        """`spark-submit --py-files ARCHIVE`; what the script printed."""
        environment = _clean_environment(self.python)
        home = Path(environment["SPARK_HOME"])
        finished = subprocess.run(
            [
                str(home / "bin" / "spark-submit"), "--master", self.url, "--py-files",
                str(archive), "--conf", "spark.driver.bindAddress=127.0.0.1",
                "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false",
                "--conf", "spark.executor.memory=600m", "--conf", "spark.executor.cores=1",
                str(script), *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
            env={**environment, "JAVA_HOME": str(self.java_home)},
            cwd=script.parent,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr[-6000:]
        return finished.stdout


@contextmanager
def spark_cluster(directory: Path, python: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A master and workers, ended whatever happens."""
    java_home = spark_java_home(find_java(), directory / "java")
    jars = spark_home(python) / "jars" / "*"
    opened = [f"--add-opens={module}=ALL-UNNAMED" for module in _MODULES]
    java = [str(java_home / "bin" / "java"), "-Xmx512m", *opened, "-cp", str(jars)]
    with ExitStack() as ended, _environment(_clean_environment(python)):
        master = _launch(
            directory / "master.log",
            [*java, _MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"],
            ended,
        )
        url = master.wait_for_line(_MASTER_STARTED).group(1)
        for number in range(workers):
            worker = _launch(
                directory / f"worker-{number}.log",
                [
                    *java, _WORKER, "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1",
                    "--memory", "1g", "--work-dir", str(directory / f"work-{number}"), url,
                ],
                ended,
            )  # fmt: skip
            worker.wait_for_line(_WORKER_STARTED)
        yield SparkCluster(url, python, java_home)


def _launch(log: Path, command: Sequence[str], ended: ExitStack) -> JavaServer:
    server = JavaServer(log)
    server.launch(command)
    ended.callback(server.end, signal.SIGTERM)
    return server


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """What processes that are started meanwhile inherit."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
