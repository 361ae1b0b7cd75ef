"""Rows as HTML tables."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from analytics.html import figures

MOST_ROWS: Final = 200

Row = Mapping[str, Any]


def table(
    rows: Sequence[Row], total: int | None = None, weight: str | None = None, most: int = MOST_ROWS
) -> str:
    """A table with a column for each name of the first row. Of too many rows those of the greatest
    weight are shown; it says how many of the total it leaves out."""
    if not rows:
        return '<p class="none">Nothing to show.</p>'
    left_out = (len(rows) if total is None else total) - min(len(rows), most)
    if left_out > 0 and weight is not None:
        rows = largest(rows, weight)
    names = list(rows[0])
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(f"<tr>{_cells(row, names)}</tr>" for row in rows[:most])
    more = f'<p class="none">{_left_out(left_out, weight)}</p>' if left_out > 0 else ""
    return (
        '<div class="scroll"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"
    )


def largest(rows: Sequence[Row], weight: str) -> list[Row]:
    """The rows by their weights, those without one last."""
    return sorted(rows, key=lambda row: (row[weight] is None, -(row[weight] or 0)))


def _left_out(rows: int, weight: str | None) -> str:
    first = f" These have the most {escape(weight.replace('_', ' '))}." if weight else ""
    return f"{rows:,} more rows.{first}"


def _cells(row: Row, names: Sequence[str]) -> str:
    return "".join(
        f'<td class="{_kind(row[name])}">{escape(figures.shown(name, row[name]))}</td>'
        for name in names
    )


def _kind(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else "text"
