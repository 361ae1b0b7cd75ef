"""A Spark session for one command: on the right Java and Python, and quiet.

Owns the environment in which Spark starts, and its end. All that Spark and its JVM write goes to
a file.
"""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from analytics.errors import AnalysisError
from analytics.spark_home import LocalSparkHome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK: Final = "127.0.0.1"
_STANDARD_OUTPUT, _STANDARD_ERROR = 1, 2

# Most of a short run is Spark's start, and most of that is loading and compiling classes: the
# quick compiler alone takes a third off it, leaving Spark's own jars unverified a tenth.
_QUICK_START: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -XX:+IgnoreUnrecognizedVMOptions"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# Spark asks the driver's Python for sources if there is such a command. All that is needed is
# registered, so the question, which costs a Python process, is not asked.
_NO_PYTHON_TO_ASK: Final = "none-since-sources-are-registered"
_TRACEBACK: Final = "Traceback (most recent call last):"
_JAVA_FRAMES: Final = "\n\tat "
_FULL_DISK: Final = ("No space left on device", "Disk quota exceeded", "File too large")


@contextmanager
def spark_session(
    java_home: Path, master: str, log_file: Path, scratch: Path
) -> Iterator["SparkSession"]:
    """A session that ends with the block: at once if the block fails or is interrupted. Raises
    AnalysisError, also for what fails inside."""
    import pyspark

    _quieten_py4j()
    spark_home = Path(pyspark.__file__).parent
    home = LocalSparkHome(scratch / "spark-home")
    is_local = master.startswith("local")
    if is_local:
        home.fill(spark_home)
    _prepare_environment(java_home, home.path if is_local else spark_home, is_local)
    try:
        with _failures_told(log_file), _warnings_to(log_file):
            with _output_to(log_file), _own_interrupts():  # the JVM inherits these descriptors
                session = _start(master, scratch)
            yield session
    finally:
        if is_local:
            _end_here(home)
        else:
            _stop(log_file)


@contextmanager
def _warnings_to(log_file: Path) -> Iterator[None]:
    """Of what PySpark's Python code warns, a user of the command has no use."""
    with warnings.catch_warnings(), log_file.open("a", encoding="utf-8") as log:

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            print(
                warnings.formatwarning(message, category, filename, lineno, line),
                file=file or log,
                flush=True,
            )

        warnings.showwarning = show
        yield


@contextmanager
def _failures_told(log_file: Path) -> Iterator[None]:
    """As AnalysisError. The JVM must be alive: PySpark's exceptions ask it for their words."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise AnalysisError(f"Spark failed: {_reason(error)}; its log is {log_file}") from error


@cache
def _quieten_py4j() -> None:
    """Its threads and its log tell at length of a JVM that was ended under them, and PySpark warns
    of it."""
    from py4j.protocol import Py4JError

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", "Exception transpiling UDF")
    logging.getLogger().addHandler(
        logging.NullHandler()
    )  # else the first word makes one that tells
    tell = threading.excepthook

    def tell_of_others(failure: threading.ExceptHookArgs) -> None:
        if not isinstance(failure.exc_value, Py4JError):
            tell(failure)

    threading.excepthook = tell_of_others


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


def _stop(log_file: Path) -> None:
    """Have a cluster told that the session ends."""
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    if session is not None:
        with _failures_told(log_file), _output_to(log_file):
            session.stop()


def _end_here(home: LocalSparkHome) -> None:
    """End the JVM without its leave: by itself it takes a second or more, and all that it leaves
    is in the scratch folder. Then let a later session of this process start anew."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    counting = getattr(context, "_accumulatorServer", None)
    if counting is not None:  # it would tell on standard error that the JVM has gone
        counting.handle_error = lambda *_: None
    home.kill_jvm()
    if counting is not None:
        threading.Thread(target=counting.shutdown, daemon=True).start()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _prepare_environment(java_home: Path, spark_home: Path, is_local: bool) -> None:
    """Spark starts its JVM and its Python workers by what the environment says. Left alone it
    would take any `java` and any `python3` of the PATH, and the latter lacks the packages."""
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["SPARK_HOME"] = str(spark_home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = _NO_PYTHON_TO_ASK
    os.environ["SPARK_LAUNCHER_OPTS"] = _QUICK_START
    if is_local:
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    here = str(Path(__file__).resolve().parent.parent)
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """PySpark takes Ctrl-C for itself; the caller's way with it is put back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    """One line on what went wrong: the last of a Python worker's traceback, else what the Java side
    says of the first cause. A full disk is told of far below both."""
    everything = f"{error} {getattr(error, '_stackTrace', '')}"
    for full in _FULL_DISK:
        if full in everything:
            return full
    told = list(_told(error))
    for text in told:
        in_python = text.partition(_TRACEBACK)[2].split(_JAVA_FRAMES)[0].strip()
        if in_python:
            return in_python.splitlines()[-1].strip()
    return told[-1].strip().partition("\n")[0].strip()


def _told(error: Exception) -> Iterator[str]:
    """What an error says; on the Java side also what that says which caused it, and so on."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        yield str(error)
    while cause is not None:
        yield str(cause.toString())
        cause = cause.getCause()
