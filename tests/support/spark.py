"""A real Spark for tests, in this process: quiet, on loopback, with the sources registered."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import analytics
from analytics.session import spark_session
from broker.java import find_java, spark_java_home


@contextmanager
def running_spark(directory: Path, master: str = "local[2]") -> Iterator[SparkSession]:
    """A session whose files lie below `directory`, and which ends with the block."""
    java_home = spark_java_home(find_java(), directory / "java")
    scratch = directory / "scratch"
    with spark_session(java_home, master, directory / "spark.log", scratch) as spark:
        analytics.register(spark)
        yield spark


def path_without_java(directory: Path) -> Path:
    """A PATH with what Spark's shell scripts call, and no Java and no Python."""
    tools = directory / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "env", "dirname", "basename", "uname", "ps", "head", "id", "rm"):
        for folder in ("/usr/bin", "/bin"):
            if Path(folder, name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(folder, name))
    return tools
