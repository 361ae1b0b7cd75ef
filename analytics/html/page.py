"""The page: summary, charts and tables in one file."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from itertools import pairwise
from typing import Any, Final

from analytics.answers import Answer
from analytics.digests import INTERNAL, MOST_LINES
from analytics.html import charts, figures
from analytics.html.summary import Rows, summary
from analytics.html.tables import table
from analytics.suite import ANALYSES, Analysis
from analytics.timestamps import is_credible

_MOST_BARS: Final = 20
_HOUR: Final = timedelta(hours=1)

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1f2933; --paper: #ffffff; --soft: #f1f4f8;
  --line: #d5dde6; --quiet: #5b6b7b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --paper: #14181d; --soft: #1e242b;
  --line: #36404b; --quiet: #9aa8b6; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1400px; margin: 0 auto; padding: 24px; }
h1 { font-size: 26px; margin-bottom: 0; } h2 { margin-top: 40px; border-bottom: 1px solid
  var(--line); } h3 { margin-bottom: 6px; font-size: 16px; }
nav a { margin-right: 14px; } a { color: #2f6fb5; }
.when, .none { color: var(--quiet); }
ul.summary { list-style: none; padding: 0; }
ul.summary li { padding: 7px 12px; margin: 5px 0; border-radius: 4px; background: var(--soft);
  border-left: 4px solid #7a8fa6; }
ul.summary li.hint { border-left-color: #d09a1c; } ul.summary li.alarm { border-left-color:
  #c9372c; font-weight: 600; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th { text-align: left; background: var(--soft); } th, td { padding: 4px 10px;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font: 12px system-ui,
  sans-serif; } svg text.label { text-anchor: end; } svg text.end { text-anchor: end; }
svg .frame { stroke: var(--line); } svg .line { fill: none; stroke-width: 1.6; }
.c0 { fill: #2f6fb5; stroke: #2f6fb5; } .c1 { fill: #d97706; stroke: #d97706; }
.c2 { fill: #2e8b57; stroke: #2e8b57; } .c3 { fill: #b5427f; stroke: #b5427f; }
.c4 { fill: #6b5bb5; stroke: #6b5bb5; } .c5 { fill: #5b8a8a; stroke: #5b8a8a; }
.c6 { fill: #a0522d; stroke: #a0522d; } .c7 { fill: #7a8fa6; stroke: #7a8fa6; }
rect { stroke: none !important; }
"""


Answers = Mapping[str, Answer]


def page(answers: Answers, directories: Sequence[str], made_at: datetime) -> str:
    """The whole report, made at a time in UTC."""
    shown = [one for one in ANALYSES if one.name in answers]
    sections = dict.fromkeys(one.section for one in shown)
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in sections)
    bodies = "".join(
        _section(name, [one for one in shown if one.section == name], answers, made_at)
        for name in sections
    )
    digests = {name: answer.digest for name, answer in answers.items()}
    sentences = "".join(
        f'<li class="{one.level}">{escape(one.text)}</li>' for one in summary(digests)
    )
    where = ", ".join(directories)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>Logs in {escape(where)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Logs in {escape(where)}</h1>"
        f'<p class="when">Read at {figures.moment(made_at)} UTC by Barnabas.</p>'
        f'<ul class="summary">{sentences}</ul><nav>{links}</nav>{bodies}</body></html>\n'
    )


def _section(name: str, analyses: Sequence[Analysis], answers: Answers, made_at: datetime) -> str:
    parts = [f'<h2 id="{_anchor(name)}">{escape(name)}</h2>']
    for one in analyses:
        answer = answers[one.name]
        parts.append(f'<h3 id="{one.name}">{escape(one.title)}</h3>')
        draw = _CHARTS.get(one.name)
        if draw is not None and answer.rows:
            parts.append(_chart(draw, answer.digest, _TIMES.get(one.name), made_at))
        if one.name not in _CHART_ONLY or not answer.rows:
            parts.append(table(answer.rows, answer.total, one.weight))
    return "".join(parts)


def _chart(draw: "Draw", rows: Rows, time: str | None, made_at: datetime) -> str:
    """A record from a clock that was wrong would squash a chart of times; it says so."""
    if time is None:
        return draw(rows)
    now = made_at.replace(tzinfo=None)
    credible = [row for row in rows if row[time] is not None and is_credible(row[time], now)]
    if not credible or len(credible) == len(rows):
        return draw(rows)
    return f'{draw(credible)}<p class="none">Times to come and those before 2000 are not drawn.</p>'


def _anchor(section: str) -> str:
    return section.lower().replace(" ", "-")


def _largest_topics(rows: Rows) -> str:
    largest = sorted(rows, key=lambda row: -row["bytes"])[:_MOST_BARS]
    return charts.bars([(row["topic"], row["bytes"]) for row in largest], "bytes")


def _traffic(rows: Rows) -> str:
    series = _series(rows, lambda row: row["topic"], "hour", "records", sum)
    step = _HOUR * max(row.get("hours", 1) for row in rows)
    return charts.lines({name: _with_quiet_times(points, step) for name, points in series.items()})


def _with_quiet_times(
    points: Sequence[tuple[datetime, float]], step: timedelta
) -> list[tuple[datetime, float]]:
    """Steps without records have no row; a line must come down to them all the same."""
    ordered = sorted(points)
    filled = ordered[:1]
    for (before, _), point in pairwise(ordered):
        if point[0] - before > step:
            filled.append((before + step, 0))
            if point[0] - before > 2 * step:
                filled.append((point[0] - step, 0))
        filled.append(point)
    return filled


def _codec_mix(rows: Rows) -> str:
    mixes: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        mixes[row["topic"]][row["codec"] or "unknown"] = row["bytes"]
    largest = sorted(mixes.items(), key=lambda item: -sum(item[1].values()))
    return charts.shares(largest[:_MOST_BARS])


def _rhythm(rows: Rows) -> str:
    """All topics together; the broker's own, full of commits, only where there are no others."""
    cells: dict[tuple[int, int], float] = defaultdict(float)
    own = [row for row in rows if not row["topic"].startswith(INTERNAL)] or rows
    for row in own:
        cells[row["weekday"], row["hour"]] += row["records"]
    return charts.week(cells)


def _lag(rows: Rows) -> str:
    def name(row: Mapping[str, Any]) -> str:
        return f"{row['group']}: {row['topic']}-{row['partition']}"

    return charts.lines(_series(rows, name, "at", "lag", max))


def _compaction(rows: Rows) -> str:
    largest = sorted(rows, key=lambda row: -row["removable_bytes"])[:_MOST_BARS]
    return charts.bars([(row["topic"], row["removable_bytes"]) for row in largest], "bytes")


def _series(
    rows: Rows,
    name: Callable[[Mapping[str, Any]], str],
    time: str,
    value: str,
    weight: Callable[[Iterable[float]], float],
) -> dict[str, list[tuple[datetime, float]]]:
    """The heaviest series; more lines than colours could not be told apart."""
    series: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    for row in rows:
        if row[time] is not None and row[value] is not None:
            series[name(row)].append((row[time], row[value]))
    largest = sorted(series.items(), key=lambda item: -weight(number for _, number in item[1]))
    return dict(largest[:MOST_LINES])


Draw = Callable[[Rows], str]

_CHARTS: Final[dict[str, Draw]] = {
    "topics": _largest_topics,
    "traffic": _traffic,
    "codecs": _codec_mix,
    "rhythm": _rhythm,
    "compaction": _compaction,
    "lag_over_time": _lag,
}
_TIMES: Final = {"traffic": "hour", "lag_over_time": "at"}
_CHART_ONLY: Final = ("traffic", "rhythm", "lag_over_time")
