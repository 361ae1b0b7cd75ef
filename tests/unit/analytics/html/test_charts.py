"""Charts: what is drawn lies within them."""

import re
from datetime import datetime

from analytics.html import charts

NOW = datetime(2030, 1, 2, 3, 4, 5)
VIEW = re.compile(r'viewBox="0 0 (\d+) (\d+)"')
NAMED = re.compile(r'<text class="axis" x="(\d+)" y="(\d+)">(topic[^<]*)<')
PLOT = re.compile(r'<g transform="translate\(0 (\d+)\)">')


def test_a_long_legend_goes_on_in_another_row_above_the_plot() -> None:
    names = [f"topic-with-a-long-name-{number}" for number in range(8)]
    chart = charts.lines({name: [(NOW, 1.0)] for name in names})
    width = int(VIEW.findall(chart)[0][0])
    labels = [(int(x), int(y), name) for x, y, name in NAMED.findall(chart)]
    assert [name for _, _, name in labels] == names
    assert all(x + 6 * len(name) <= width for x, _, name in labels)
    rows = sorted({y for _, y, _ in labels})
    assert len(rows) > 1
    assert int(PLOT.findall(chart)[0]) == rows[-1] - rows[0]


def test_a_short_legend_moves_nothing() -> None:
    chart = charts.shares([("a", {"topic": 1.0})])
    assert PLOT.findall(chart) == ["0"]
