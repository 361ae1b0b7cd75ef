"""Charts as SVG: plain shapes and text, sized by a view box, coloured by the page's style."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Final

from analytics.html import figures

_WIDTH: Final = 760
_LABELS: Final = 190
_BAR: Final = 18
_BAR_STEP: Final = 26
_LEGEND_STEP: Final = 18
_PLOT_HEIGHT: Final = 180
_MARGIN: Final = 34
_CELL: Final = 26
_COLOURS: Final = ("c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7")
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONGEST_LABEL: Final = 26


def bars(values: Sequence[tuple[str, float]], shown: str = "records") -> str:
    """One bar a label, the longest as wide as there is room."""
    top = max((value for _, value in values), default=0) or 1
    room = _WIDTH - _LABELS - 110
    parts = []
    for row, (label, value) in enumerate(values):
        y = row * _BAR_STEP
        width = max(1.0, room * max(value, 0) / top)
        text = figures.shown(shown, value)
        parts.append(
            f'<text class="label" x="{_LABELS - 8}" y="{y + 14}">{_short(label)}</text>'
            f'<rect class="c0" x="{_LABELS}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2">'
            f"<title>{escape(label)}: {escape(text)}</title></rect>"
            f'<text class="value" x="{_LABELS + width + 8:.1f}" y="{y + 14}">{escape(text)}</text>'
        )
    return _svg(_WIDTH, max(1, len(values)) * _BAR_STEP, parts)


def shares(rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """A full bar a label, divided by the parts' shares."""
    names = sorted({name for _, parts in rows for name in parts})
    colours = {name: _COLOURS[slot % len(_COLOURS)] for slot, name in enumerate(names)}
    drawn = []
    room = _WIDTH - _LABELS - 10
    for row, (label, parts) in enumerate(rows):
        y = (row + 1) * _BAR_STEP
        total = sum(parts.values()) or 1
        drawn.append(f'<text class="label" x="{_LABELS - 8}" y="{y + 14}">{_short(label)}</text>')
        x = float(_LABELS)
        for name, value in sorted(parts.items()):
            width = room * value / total
            drawn.append(
                f'<rect class="{colours[name]}" x="{x:.1f}" y="{y}" width="{width:.1f}"'
                f' height="{_BAR}"><title>{escape(label)}, {escape(name)}:'
                f" {figures.share(value / total)}</title></rect>"
            )
            x += width
    return _below_legend(colours, (len(rows) + 1) * _BAR_STEP, drawn)


def lines(series: Mapping[str, Sequence[tuple[datetime, float]]], shown: str = "records") -> str:
    """Values over time, one line a name."""
    points = [point for one in series.values() for point in one]
    if not points:
        return ""
    first, last = min(at for at, _ in points), max(at for at, _ in points)
    seconds = (last - first).total_seconds() or 1
    top = max(value for _, value in points) or 1
    left, height = _MARGIN * 2, _PLOT_HEIGHT
    room = _WIDTH - left - 10
    colours = {name: _COLOURS[slot % len(_COLOURS)] for slot, name in enumerate(series)}
    drawn = [_frame(left, room, height, top, shown, first, last)]
    for name, one in series.items():
        path = [
            f"{left + room * (at - first).total_seconds() / seconds:.1f},"
            f"{_BAR_STEP + height * (1 - value / top):.1f}"
            for at, value in sorted(one)
        ]
        if len(path) == 1:
            x, y = path[0].split(",")
            drawn.append(f'<circle class="{colours[name]}" cx="{x}" cy="{y}" r="3"/>')
        drawn.append(f'<polyline class="line {colours[name]}" points="{" ".join(path)}"/>')
    return _below_legend(colours, height + _BAR_STEP + _MARGIN, drawn)


def week(values: Mapping[tuple[int, int], float]) -> str:
    """A heat map: days of the week by hours of the day."""
    top = max(values.values(), default=0) or 1
    left = 50
    drawn = [
        f'<text class="axis" x="{left + hour * _CELL + 4}" y="12">{hour:02d}</text>'
        for hour in range(0, 24, 3)
    ]
    for weekday, name in enumerate(_WEEKDAYS):
        y = 18 + weekday * _CELL
        drawn.append(f'<text class="label" x="{left - 8}" y="{y + 17}">{name}</text>')
        for hour in range(24):
            value = values.get((weekday, hour), 0)
            drawn.append(
                f'<rect class="c0" x="{left + hour * _CELL}" y="{y}" width="{_CELL - 2}"'
                f' height="{_CELL - 2}" rx="2" fill-opacity="{0.06 + 0.94 * value / top:.3f}">'
                f"<title>{name} {hour:02d}:00: {figures.count(value)}</title></rect>"
            )
    return _svg(left + 24 * _CELL, 18 + 7 * _CELL, drawn)


def _frame(
    left: int,
    room: int,
    height: int,
    top: float,
    shown: str,
    first: datetime,
    last: datetime,
) -> str:
    base = _BAR_STEP + height
    return (
        f'<line class="frame" x1="{left}" y1="{base}" x2="{left + room}" y2="{base}"/>'
        f'<line class="frame" x1="{left}" y1="{_BAR_STEP}" x2="{left}" y2="{base}"/>'
        f'<text class="label" x="{left - 6}" y="{_BAR_STEP + 10}">'
        f"{escape(figures.shown(shown, top))}</text>"
        f'<text class="label" x="{left - 6}" y="{base}">0</text>'
        f'<text class="axis" x="{left}" y="{base + 18}">{figures.moment(first)}</text>'
        f'<text class="axis end" x="{left + room}" y="{base + 18}">{figures.moment(last)}</text>'
    )


def _below_legend(colours: Mapping[str, str], height: int, drawn: Sequence[str]) -> str:
    """A chart that leaves room for one row of its legend, moved down by those that follow."""
    names: list[str] = []
    x, y = 4.0, 0
    for name, colour in colours.items():
        width = 34 + 6.5 * min(len(name), _LONGEST_LABEL)
        if x + width > _WIDTH and names:
            x, y = 4.0, y + _LEGEND_STEP
        names.append(
            f'<rect class="{colour}" x="{x:.0f}" y="{y + 4}" width="12" height="12" rx="2"/>'
            f'<text class="axis" x="{x + 16:.0f}" y="{y + 14}">{_short(name)}</text>'
        )
        x += width
    moved = f'<g transform="translate(0 {y})">{"".join(drawn)}</g>'
    return _svg(_WIDTH, height + y, [*names, moved])


def _short(label: str) -> str:
    cut = label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
    return escape(cut)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img">{"".join(parts)}</svg>'
