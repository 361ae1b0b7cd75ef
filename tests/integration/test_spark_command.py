"""`barnabas spark`: a Spark program as its user starts it, on a machine with no Java of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.spark import path_without_java
from tests.unit.analytics.segments import batch, write_segment

PROJECT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 240

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)  # Spark's start is heavy on a busy machine

# The workers' Python is for analytics.register to find: that of the environment is taken away.
PROGRAM = """
import os, sys
del os.environ["PYSPARK_PYTHON"]
from pyspark.sql import SparkSession
import analytics
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
analytics.register(spark)
print(spark.read.format("barnabas").load(sys.argv[1]).count(), "records")
spark.stop()
"""


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "broker", "spark", *map(str, arguments)]


def environment(**changed: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1", **changed}


def test_a_program_reads_logs_where_there_is_no_java_and_another_python(tmp_path: Path) -> None:
    write_segment(tmp_path / "logs", "castle-0", 0, [batch(0, 3), batch(3, 4)])
    (tmp_path / "program.py").write_text(PROGRAM)
    tools = path_without_java(tmp_path)
    (tools / "python3").write_text("#!/bin/sh\nexit 3\n")
    (tools / "python3").chmod(0o755)
    surroundings = environment(PATH=str(tools))
    surroundings.pop("JAVA_HOME", None)
    finished = subprocess.run(
        command(sys.executable, tmp_path / "program.py", tmp_path / "logs"),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=tmp_path,
        env=surroundings,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    assert "7 records" in finished.stdout


def test_the_exit_status_is_the_programs() -> None:
    program = command(sys.executable, "-c", "raise SystemExit(7)")
    assert subprocess.run(program, env=environment(), timeout=TIMEOUT_S).returncode == 7


def test_a_program_that_cannot_be_run_is_told_in_one_line() -> None:
    finished = subprocess.run(
        command("no-such-program"),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(),
    )
    assert finished.returncode == 1
    assert finished.stderr == "no-such-program: cannot be run: No such file or directory\n"


def test_a_program_is_ended_with_the_command() -> None:
    program = command(sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")
    with subprocess.Popen(program, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == b"", "the program has ended: nobody else has its output"
        assert process.wait(TIMEOUT_S) == 128 + signal.SIGTERM
