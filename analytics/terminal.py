"""The answers as a person reads them at a terminal: short tables, faults, and the summary."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from analytics.answers import Answer
from analytics.errors import AnalysisError
from analytics.html.figures import shown
from analytics.logs.partitions import PartitionLog
from analytics.report import (
    InventoryRow,
    print_inventory,
    print_table,
    unread_tails,
    with_empty_partitions,
)

MOST_FAULTS: Final = 20
MOST_ROWS: Final = 20

_SHOWN_OTHERWISE: Final = ("partitions", "faults")


class _Output(Console):
    """Standard output; Rich would end the process where nobody reads it any more."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def tell(
    answers: Mapping[str, Answer],
    partitions: Sequence[PartitionLog],
    written: Sequence[Path],
    has_tables: bool,
) -> None:
    """Print what matters of the answers, as tables those that are read nowhere else, and the names
    of what was written."""
    try:
        console = _Output()
        _print_holdings(answers, partitions, console)
        if has_tables:
            _print_tables(answers, console)
        _print_faults(answers, console)
        _print_summary(answers, console)
        for one in written:
            _print_line(f"Written: {one}", console)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        _discard_output()
    except OSError as error:
        _discard_output()
        raise AnalysisError(f"standard output: {error.strerror}") from error


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_holdings(
    answers: Mapping[str, Answer], partitions: Sequence[PartitionLog], console: Console
) -> None:
    if "partitions" not in answers:
        return
    rows = with_empty_partitions(map(_inventory_row, answers["partitions"].rows), partitions)
    notes = [] if "faults" in answers else unread_tails(rows, partitions)
    print_inventory(rows, [*notes[:MOST_FAULTS], *_more(len(notes) - MOST_FAULTS)], console)


def _print_tables(answers: Mapping[str, Answer], console: Console) -> None:
    from analytics.html.tables import largest
    from analytics.suite import ANALYSES

    for one in ANALYSES:
        if one.name not in answers or one.name in _SHOWN_OTHERWISE:
            continue
        answer = answers[one.name]
        rows: Sequence[Mapping[str, Any]] = answer.rows
        if one.weight is not None and answer.total > MOST_ROWS:
            rows = largest(rows, one.weight)
        _print_line(f"{one.title}:" if rows else f"{one.title}: nothing.", console)
        if rows:
            _print_rows(rows[:MOST_ROWS], console)
        for line in _more(answer.total - MOST_ROWS):
            _print_line(line, console)


def _print_rows(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    numbers = {name for name, value in rows[0].items() if isinstance(value, int | float)}
    head = [(name.replace("_", " "), name in numbers) for name in rows[0]]
    cells = [[_plain(shown(name, value)) for name, value in row.items()] for row in rows]
    print_table(head, cells, console)


def _print_faults(answers: Mapping[str, Answer], console: Console) -> None:
    faults = answers.get("faults", Answer.of([]))
    for fault in faults.rows[:MOST_FAULTS]:
        place = f" at {fault['position']}" if fault["position"] is not None else ""
        _print_line(f"{fault['file']}{place}: {fault['kind']}: {fault['detail']}", console)
    for line in _more(faults.total - MOST_FAULTS):
        _print_line(line, console)


def _print_summary(answers: Mapping[str, Answer], console: Console) -> None:
    from analytics.html.summary import Level, summary

    for level, text in summary({name: answer.digest for name, answer in answers.items()}):
        _print_line(text, console, style="bold red" if level is Level.ALARM else None)


def _print_line(text: str, console: Console, style: str | None = None) -> None:
    console.print(_plain(text), style=style, markup=False, highlight=False, soft_wrap=True)


def _more(rows: int) -> Iterable[str]:
    return [f"... and {rows:,} more; --out writes all"] if rows > 0 else []


def _plain(text: str) -> str:
    """Names are whatever clients chose; a terminal obeys some characters."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


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
