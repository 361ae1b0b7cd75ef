"""Spark's own Kafka source, to compare with: a PySpark and its connector in a cache folder.

Owns a virtual environment with PySpark 4.0.0 and the jars of spark-sql-kafka-0-10 of that release;
nothing of either is part of the project.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.support.maven import cache_directory
from tests.support.spark_places import python_with

SPARK_VERSION: Final = "4.0.0"
# What the connector needs beside PySpark's own jars.
_JARS: Final = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
_POM: Final = f"""<project><modelVersion>4.0.0</modelVersion><groupId>barnabas</groupId>
<artifactId>spark-kafka</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId>
<version>{SPARK_VERSION}</version></dependency></dependencies></project>"""


def python_with_connector() -> Path:
    """The interpreter of an environment with that PySpark."""
    return python_with(f"pyspark-{SPARK_VERSION}", f"pyspark=={SPARK_VERSION}", "pyarrow", "pandas")


def connector_jars() -> list[Path]:
    """The jars of the connector, fetched by Maven when they are first needed."""
    libraries = cache_directory() / f"spark-kafka-{SPARK_VERSION}"
    if not libraries.is_dir():
        maven = shutil.which("mvn")
        if maven is None:
            raise SystemExit("Maven (mvn) is missing, which fetches Spark's Kafka source")
        libraries.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=libraries.parent) as workplace:
            (Path(workplace) / "pom.xml").write_text(_POM)
            command = [maven, "-B", "-q", "dependency:copy-dependencies"]
            command += ["-DincludeScope=runtime", f"-DoutputDirectory={workplace}/libraries"]
            subprocess.run(command, cwd=workplace, check=True, timeout=600)
            (Path(workplace) / "libraries").rename(libraries)
    return [jar for jar in sorted(libraries.iterdir()) if jar.name.startswith(_JARS)]
