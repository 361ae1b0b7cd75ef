"""`barnabas analyze`, `barnabas spark` and `barnabas spark-archive`: their arguments, and Spark's
Java. All else is analytics'."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.errors import StartupError

_SIGNALLED = 128
_UNITS = "KMGT"
_LARGEST_DISK = 1 << 62


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Ask log directories, with Spark, what they hold and whether it is sound. The broker may"
        " be running or not: only files are read. With --out or --report all analyses run,"
        " otherwise the inventory and the audit. The exit status is 1 if the audit finds a fault."
    )
    command.add_argument(
        "directories",
        metavar="DIR",
        nargs="+",
        help="a log directory or a folder of several: a path, or a URI that PyArrow opens",
    )
    command.add_argument(
        "--topic",
        dest="topics",
        metavar="TOPIC",
        action="append",
        default=[],
        help="look at this topic only; may be given many times",
    )
    command.add_argument(
        "--only",
        dest="names",
        metavar="NAME,...",
        type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
        default=[],
        help="run these analyses only (a wrong name lists them all)",
    )
    command.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="write a Parquet table per analysis to a new or empty DIR",
    )
    command.add_argument(
        "--report", metavar="FILE", type=Path, help="write a report with charts to this HTML file"
    )
    command.add_argument(
        "--disk-free",
        metavar="BYTES",
        type=size_in_bytes,
        help="reckon when disks with so many free bytes would be full (500GB, say); default: the"
        " disks that the directories lie on",
    )
    command.add_argument(
        "--master", default="local[*]", help="Spark master; default: local[*], all cores"
    )
    command.add_argument(
        "--spark-log", metavar="FILE", type=Path, help="keep what Spark logs in this file"
    )
    command.set_defaults(run=run)


def size_in_bytes(text: str) -> int:
    """Bytes; with K, M, G or T and perhaps a B behind, thousands of them and so on."""
    number = text.upper().removesuffix("B")
    power = _UNITS.find(number[-1:]) + 1
    try:
        size = float(number[:-1] if power else number) * 1000**power
    except ValueError:
        size = -1.0
    if not 0 <= size <= _LARGEST_DISK:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500GB")
    return int(size)


def run(parsed: argparse.Namespace) -> int:
    from analytics.command import Request, analyze
    from analytics.errors import AnalysisError
    from analytics.interrupts import Interrupted, interruptible, leave

    request = Request(
        directories=parsed.directories,
        topics=parsed.topics,
        names=parsed.names,
        out=parsed.out,
        report=parsed.report,
        master=parsed.master,
        spark_log=parsed.spark_log,
        disk_free=parsed.disk_free,
    )
    try:
        with interruptible(), _spark_java_home() as java_home:
            return analyze(request, java_home)
    except AnalysisError as error:
        raise StartupError(str(error)) from error
    except Interrupted as interrupted:
        print(f"Not finished: {interrupted}", file=sys.stderr)
        return leave(interrupted.status)


@contextmanager
def _spark_java_home() -> Iterator[Path]:
    from broker.java import find_java, spark_java_home

    java = find_java()
    try:
        launcher_home = tempfile.TemporaryDirectory(prefix="barnabas-java-")
    except OSError as error:
        raise StartupError(f"temporary files: {error.strerror}") from error
    with launcher_home as folder:
        yield spark_java_home(java, Path(folder))


def add_spark_arguments(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Run COMMAND (an interactive Python without one) where PySpark finds a Java that serves"
        " and workers run on the same Python: a notebook, a script, spark-submit."
    )
    command.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER)
    command.set_defaults(run=run_with_spark)


def run_with_spark(parsed: argparse.Namespace) -> int:
    command = parsed.command or [sys.executable]
    with _spark_java_home() as java_home:
        here = str(Path(sys.executable).parent)
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home),
            "PATH": os.pathsep.join([here, os.environ.get("PATH", "")]),
        }
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
        signal.signal(signal.SIGINT, lambda *_: None)  # the terminal sends it to the command too
        try:
            process = subprocess.Popen(command, env=environment)
        except OSError as error:
            raise StartupError(f"{command[0]}: cannot be run: {error.strerror}") from error
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        status = process.wait()
    return status if status >= 0 else _SIGNALLED - status


def add_archive_arguments(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write the code that reads log directories in Spark to FILE, a zip archive for"
        " spark-submit --py-files FILE, so that it need not be installed where executors run."
    )
    command.add_argument("file", metavar="FILE", type=Path, help="the archive, as a .zip")
    command.set_defaults(run=write_archive)


def write_archive(parsed: argparse.Namespace) -> int:
    from analytics.archive import write_archive as write

    try:
        write(parsed.file)
    except OSError as error:
        raise StartupError(f"{parsed.file}: cannot be written: {error.strerror}") from error
    return 0
