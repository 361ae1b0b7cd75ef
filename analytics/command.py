"""`barnabas analyze`: asks log directories everything, on Spark, and tells a person the answers.

Owns the steps of the command: find the logs, start Spark, run the analyses one after the other
behind a progress bar, write tables and report, print what matters.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from analytics.errors import AnalysisError
from analytics.logs import places
from analytics.logs.partitions import PartitionLog, find_all
from analytics.report import InventoryRow, print_inventory, unread_tails, with_empty_partitions
from analytics.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.suite import Analysis, Tables

# Without a report or tables to fill, only what fits a terminal is asked.
_FOR_A_TERMINAL: Final = ("partitions", "faults")
_ANALYSES_AT_ONCE: Final = 4
_MOST_ROWS_OF_A_REPORT: Final = 50_000
_FAULTS_FOUND: Final = 1
_MOST_FAULTS_PRINTED: Final = 20

Rows = list[dict[str, Any]]


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


def analyze(request: Request, java_home: Path) -> int:
    """Answer, print and write; the exit status, 1 if the audit found something wrong.

    Raises AnalysisError. Spark's own words go to the log file that was asked for; without one
    they are kept only if Spark fails.
    """
    chosen = _chosen_analyses(request)
    partitions = _chosen_partitions(request)
    _check_targets(request)
    log_file = request.spark_log.absolute() if request.spark_log else _temporary_log()
    with (
        _progress() as progress,
        tempfile.TemporaryDirectory(prefix="barnabas-spark-") as scratch,
    ):
        task = progress.add_task("Starting Spark", total=None)
        with spark_session(java_home, request.master, log_file, Path(scratch)) as spark:
            progress.update(task, total=len(chosen))
            progress.update(task, description="Reading the logs")
            tables = _tables(spark, request, partitions)
            results: dict[str, Rows] = {}
            # Several at once: most of a small answer's time is Spark's planning, on one core.
            with ThreadPoolExecutor(_ANALYSES_AT_ONCE) as pool:
                answers = pool.map(lambda one: (one, _run(one, tables, request.out)), chosen)
                for one, rows in answers:
                    results[one.name] = rows
                    progress.update(task, advance=1, description=one.title)
    if request.spark_log is None:
        log_file.unlink(missing_ok=True)
    if request.report is not None:
        _write_report(request.report, results, request.directories)
    _print(request, results, partitions)
    return _FAULTS_FOUND if results.get("faults") else 0


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


def _chosen_partitions(request: Request) -> list[PartitionLog]:
    found = find_all(request.directories)
    if not request.topics:
        return found
    missing = set(request.topics) - {log.topic for log in found}
    if missing:
        raise AnalysisError(f"--topic: {', '.join(sorted(missing))}: there is no such topic")
    return [log for log in found if log.topic in request.topics]


def _check_targets(request: Request) -> None:
    """Refuse what could not be written before anything takes time."""
    if request.out is not None and request.out.exists() and any(_entries(request.out)):
        raise AnalysisError(f"--out: {request.out}: is there already and not an empty directory")
    if request.report is not None and not request.report.absolute().parent.is_dir():
        raise AnalysisError(f"--report: {request.report}: there is no such directory")


def _entries(directory: Path) -> Iterator[object]:
    return directory.iterdir() if directory.is_dir() else iter([directory])


def _tables(spark: "SparkSession", request: Request, partitions: list[PartitionLog]) -> "Tables":
    from analytics.source.sources import BATCHES, RECORDS, register
    from analytics.suite import Tables

    register(spark)

    def load(name: str, **options: str) -> "DataFrame":
        reader = spark.read.format(name).option("onDamage", "skip").options(**options)
        if request.topics:
            reader = reader.option("subscribe", ",".join(request.topics))
        return reader.load([places.absolute(directory) for directory in request.directories])

    return Tables(
        spark=spark,
        partitions=partitions,
        batches=load(BATCHES),
        records=load(RECORDS, isolationLevel="read_committed"),
        free_bytes=_free_bytes({log.log_dir for log in partitions}),
    )


def _free_bytes(log_dirs: set[str]) -> dict[str, int]:
    free = {}
    for log_dir in log_dirs:
        try:
            free[log_dir] = shutil.disk_usage(log_dir).free
        except OSError:
            continue
    return free


def _run(one: "Analysis", tables: "Tables", out: Path | None) -> Rows:
    answer = one.build(tables)
    if out is not None:
        target = str(out.absolute() / one.name)
        answer.write.parquet(target)
        answer = tables.spark.read.parquet(target)
    rows = answer.orderBy(*one.order).limit(_MOST_ROWS_OF_A_REPORT).collect()
    return [row.asDict() for row in rows]


def _write_report(file: Path, results: dict[str, Rows], directories: Sequence[str]) -> None:
    from analytics.html.page import page

    text = page(results, directories, datetime.now(UTC))
    temporary = file.with_name(f"{file.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    except OSError as error:
        raise AnalysisError(f"--report: {file}: {error.strerror}") from error


def _print(request: Request, results: dict[str, Rows], partitions: list[PartitionLog]) -> None:
    from analytics.html.summary import Level, summary

    console = Console()
    if "partitions" in results:
        rows = with_empty_partitions(map(_inventory_row, results["partitions"]), partitions)
        notes = [] if "faults" in results else unread_tails(rows, partitions)
        print_inventory(rows, notes, console)
    for fault in results.get("faults", [])[:_MOST_FAULTS_PRINTED]:
        place = f" at {fault['position']}" if fault["position"] is not None else ""
        text = f"{fault['file']}{place}: {fault['kind']}: {fault['detail']}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    for level, text in summary(results):
        style = "bold red" if level is Level.ALARM else None
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
    for written in (request.out, request.report):
        if written is not None:
            console.print(f"Written: {written}", markup=False, highlight=False, soft_wrap=True)


def _inventory_row(row: dict[str, Any]) -> InventoryRow:
    return InventoryRow(
        row["log_dir"],
        row["topic"],
        row["partition"],
        row["records"],
        row["bytes"],
        row["first_offset"],
        row["last_offset"],
        _milliseconds(row["first_timestamp"]),
        _milliseconds(row["last_timestamp"]),
    )


def _milliseconds(moment: datetime | None) -> int | None:
    """Spark hands times out without a zone; the session's is UTC."""
    return None if moment is None else round(moment.replace(tzinfo=UTC).timestamp() * 1000)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar for a person at a terminal; nothing for a file."""
    columns = (TextColumn("{task.description} ..."), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as one:
        yield one


def _temporary_log() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="barnabas-spark-", suffix=".log")
    os.close(descriptor)
    return Path(name)
