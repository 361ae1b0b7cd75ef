"""Rows as HTML tables."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from analytics.html import figures

MOST_ROWS: Final = 200

Row = Mapping[str, Any]


def table(rows: Sequence[Row], most: int = MOST_ROWS) -> str:
    """A table with a column for each name of the first row; says how many rows it leaves out."""
    if not rows:
        return '<p class="none">Nothing to show.</p>'
    names = list(rows[0])
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(f"<tr>{_cells(row, names)}</tr>" for row in rows[:most])
    more = f'<p class="none">{len(rows) - most:,} more rows.</p>' if len(rows) > most else ""
    return (
        '<div class="scroll"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"
    )


def _cells(row: Row, names: Sequence[str]) -> str:
    return "".join(
        f'<td class="{_kind(row[name])}">{escape(figures.shown(name, row[name]))}</td>'
        for name in names
    )


def _kind(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else "text"
