"""A Spark session for one command: on the right Java and Python, and quiet.

Owns the environment in which Spark starts. All that Spark and its JVM write goes to a file.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_STANDARD_OUTPUT, _STANDARD_ERROR = 1, 2

# Most of a short run is Spark's start, and most of that is compiling: the quick compiler alone
# takes a third off it, and the work itself is done by the Python side.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def spark_session(
    java_home: Path, master: str, log_file: Path, scratch: Path
) -> Iterator["SparkSession"]:
    """A session that ends with the block. Raises AnalysisError, also for what fails inside."""
    import pyspark
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    _prepare_environment(java_home, Path(pyspark.__file__).parent, master)
    try:
        with _output_to(log_file):  # the JVM inherits these descriptors and keeps them
            session = _start(master, scratch)
        try:
            yield session
        finally:
            with _output_to(log_file):
                session.stop()
    except (PySparkException, Py4JError) as error:
        raise AnalysisError(f"Spark failed: {_reason(error)}; its log is {log_file}") from error


def _start(master: str, scratch: Path) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.appName("barnabas analyze")
        .master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.warehouse.dir", str(scratch))
    )
    if master.startswith("local"):
        builder = (
            builder.config("spark.driver.bindAddress", _LOOPBACK)
            .config("spark.driver.host", _LOOPBACK)
            .config("spark.driver.extraJavaOptions", _QUICK_START)
            .config("spark.local.dir", str(scratch))
        )
    return builder.getOrCreate()


def _prepare_environment(java_home: Path, spark_home: Path, master: str) -> None:
    """Spark starts its JVM and its Python workers by what the environment says. Left alone it
    would take any `java` and any `python3` of the PATH, and the latter lacks the packages."""
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["SPARK_HOME"] = str(spark_home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LAUNCHER_OPTS"] = _QUICK_START
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    here = str(Path(__file__).resolve().parent.parent)
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


@contextmanager
def _output_to(file: Path) -> Iterator[None]:
    """Everything written to standard output and error, by this process or one that it starts
    meanwhile, goes to the file."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(descriptor) for descriptor in (_STANDARD_OUTPUT, _STANDARD_ERROR)]
    target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, _STANDARD_OUTPUT)
        os.dup2(target, _STANDARD_ERROR)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], _STANDARD_OUTPUT)
        os.dup2(saved[1], _STANDARD_ERROR)
        for descriptor in (*saved, target):
            os.close(descriptor)


def _reason(error: Exception) -> str:
    """The first line of what went wrong, of the Java side's words where it speaks."""
    java_exception = getattr(error, "java_exception", None)
    text = str(java_exception.toString() if java_exception is not None else error)
    return text.strip().splitlines()[0].strip()
