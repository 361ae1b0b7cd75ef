"""`barnabas analyze`: asks log directories everything, on Spark, and tells a person the answers.

Owns the steps of the command: find the logs, start Spark, run the analyses one after the other
behind a progress bar, write tables and report, have printed what matters.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from analytics.answers import Answer, answers
from analytics.errors import AnalysisError
from analytics.logs import places
from analytics.logs.partitions import PartitionLog, find_all
from analytics.session import spark_session
from analytics.staging import replace_file, staged_folder
from analytics.targets import check_targets
from analytics.terminal import tell
from storage.segment_files import is_text, readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

    from analytics.suite import Analysis
    from analytics.tables import Tables

# Without a report or tables to fill, only what fits a terminal is asked.
_FOR_A_TERMINAL: Final = ("partitions", "faults")
# Up to here one core does the work as fast as many.
_SMALL_BYTES: Final = 16 << 20
_FAULTS_FOUND: Final = 1


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    directories: Sequence[str]
    topics: Sequence[str] = ()
    names: Sequence[str] = ()
    out: Path | None = None
    report: Path | None = None
    master: str = "local[*]"
    spark_log: Path | None = None
    disk_free: int | None = None


def analyze(request: Request, java_home: Path) -> int:
    """Answer, print and write; the exit status, 1 if the audit found something wrong.

    Raises AnalysisError. Spark's own words go to the log file that was asked for; without one
    they are kept only if Spark fails. Tables and report appear under their names once they are
    whole, and not at all if something fails.
    """
    with _disk_failures_told():
        chosen = _chosen_analyses(request)
        # HDFS is read through Java, also before Spark starts.
        os.environ["JAVA_HOME"] = str(java_home)
        found = _found_partitions(request)
        partitions = _chosen_partitions(request, found)
        log_dirs = {log.log_dir for log in found}
        check_targets(request.out, request.report, request.spark_log, log_dirs)
        results = _results(request, java_home, chosen, found)
    if request.report is not None:
        _write_report(request.report, results, request.directories)
    written = [one for one in (request.out, request.report) if one is not None]
    tell(results, partitions, written, has_tables=bool(request.names) and not written)
    return _FAULTS_FOUND if "faults" in results and results["faults"].total else 0


def _results(
    request: Request,
    java_home: Path,
    chosen: list["Analysis"],
    found: list[PartitionLog],
) -> dict[str, Answer]:
    """The answers of Spark, which is started for them; the tables are written."""
    results: dict[str, Answer] = {}
    with (
        _progress() as progress,
        _spark_log(request) as log_file,
        tempfile.TemporaryDirectory(
            prefix="barnabas-spark-", ignore_cleanup_errors=True
        ) as scratch,
        staged_folder(request.out) as folder,
    ):
        task = progress.add_task("Starting Spark", total=None)
        with spark_session(java_home, request.master, log_file, Path(scratch)) as spark:
            progress.update(task, total=len(chosen), description="Reading the logs")
            tables = _tables(spark, request, found, len(chosen))
            for one, answer in answers(chosen, tables, folder):
                results[one.name] = answer
                progress.update(task, advance=1, description=one.title)
    return results


def _chosen_analyses(request: Request) -> list["Analysis"]:
    from analytics.suite import ANALYSES

    known = [one.name for one in ANALYSES]
    unknown = [name for name in request.names if name not in known]
    if unknown:
        raise AnalysisError(
            f"--only: {', '.join(unknown)}: there is no such analysis; there are {', '.join(known)}"
        )
    names = request.names or (known if request.out or request.report else _FOR_A_TERMINAL)
    return [one for one in ANALYSES if one.name in names]


def _found_partitions(request: Request) -> list[PartitionLog]:
    for directory in request.directories:
        if not directory:
            raise AnalysisError("DIR is empty; name a log directory")
        if os.path.isdir(directory) and not os.access(directory, os.R_OK | os.X_OK):
            raise AnalysisError(f"{directory}: cannot be read: Permission denied")
    found = find_all(request.directories)
    for log in found:
        if not is_text(log.directory):
            raise AnalysisError(
                f"{readable(log.log_dir)}: the name is not UTF-8; name a link to it whose name is"
            )
    return found


def _chosen_partitions(request: Request, found: list[PartitionLog]) -> list[PartitionLog]:
    if not request.topics:
        return found
    missing = set(request.topics) - {log.topic for log in found}
    if missing:
        raise AnalysisError(f"--topic: {', '.join(sorted(missing))}: there is no such topic")
    return [log for log in found if log.topic in request.topics]


def _tables(
    spark: "SparkSession", request: Request, found: list[PartitionLog], analyses: int
) -> "Tables":
    from analytics.source.reading_here import read_here
    from analytics.source.sources import BatchSource, RecordSource, register
    from analytics.tables import READ_WHAT_IS_LEFT, Tables, commit_logs

    register(spark)
    partitions = _chosen_partitions(request, found)
    directories = [places.absolute(directory) for directory in request.directories]

    def load(
        kind: type["DataSource"], logs: Sequence[PartitionLog] = partitions, **options: str
    ) -> "DataFrame":
        wanted = {**READ_WHAT_IS_LEFT, **options}
        if len(logs) < len(found):
            wanted["subscribe"] = ",".join(request.topics)
        is_small = sum(log.size for log in logs) <= _SMALL_BYTES
        table = read_here(spark, kind, directories, wanted) if is_small else None
        if table is None:
            table = spark.read.format(kind.name()).options(**wanted).load(directories)
        # What lies in one piece is never shuffled, which would take most of the time.
        return table.coalesce(1) if is_small else table

    batches = load(BatchSource)
    return Tables(
        spark=spark,
        partitions=partitions,
        commit_logs=commit_logs(found),
        batches=batches if analyses <= len(_FOR_A_TERMINAL) else batches.persist(),
        load_records=lambda: load(RecordSource, isolationLevel="read_committed"),
        free_bytes=_free_bytes(request, {log.log_dir for log in found}),
        load_everything=(lambda: load(BatchSource, found)) if request.topics else None,
    )


def _free_bytes(request: Request, log_dirs: set[str]) -> dict[str, int]:
    if request.disk_free is not None:
        return dict.fromkeys(log_dirs, request.disk_free)
    free = {}
    for log_dir in log_dirs:
        try:
            free[log_dir] = shutil.disk_usage(log_dir).free
        except OSError:
            continue
    return free


def _write_report(file: Path, results: dict[str, Answer], directories: Sequence[str]) -> None:
    from analytics.html.page import page

    text = page(results, directories, datetime.now(UTC))
    try:
        replace_file(file, text)
    except OSError as error:
        raise AnalysisError(f"--report: {file}: {error.strerror}") from error


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar for a person at a terminal; nothing for a file."""
    columns = (TextColumn("{task.description} ..."), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as one:
        yield one


@contextmanager
def _spark_log(request: Request) -> Iterator[Path]:
    """The file that was asked for; without one, a file that is kept only if Spark fails."""
    if request.spark_log is not None:
        yield request.spark_log.absolute()
        return
    descriptor, name = tempfile.mkstemp(prefix="barnabas-spark-", suffix=".log")
    os.close(descriptor)
    try:
        yield Path(name)
    except AnalysisError as error:
        if name not in str(error):
            os.unlink(name)
        raise
    except BaseException:
        os.unlink(name)
        raise
    os.unlink(name)


@contextmanager
def _disk_failures_told() -> Iterator[None]:
    """What cannot be written for Spark is told as what cannot be written for a user."""
    try:
        yield
    except OSError as error:
        place = error.filename or "temporary files"
        raise AnalysisError(f"{place}: {error.strerror or error}") from error
