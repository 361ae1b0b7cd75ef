"""The report and its tables, made by the command and looked at in a real browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analytics.suite import ANALYSES
from tests.fidelity.fixture_logs import copy_data
from tests.integration.test_analyze import analyze

pytestmark = pytest.mark.timeout(900)  # Spark's start is heavy on a busy machine

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
# Left to itself, the browser looks for updates; here it has no network to look in.
BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--window-size=1200,4000",
)
LOOK = """
<script>
addEventListener("load", () => {
  const overlapping = [...document.querySelectorAll("h2, h3")].filter(
    (one) => one.getBoundingClientRect().height === 0);
  document.title = JSON.stringify({
    sections: document.querySelectorAll("h2").length,
    tables: document.querySelectorAll("table").length,
    charts: [...document.querySelectorAll("svg")].filter(
      (one) => one.getBoundingClientRect().height > 10).length,
    sentences: document.querySelectorAll("ul.summary li").length,
    invisible: overlapping.length,
    fetched: performance.getEntriesByType("resource").length,
  });
});
</script>
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a report and tables of logs that Apache Kafka wrote."""
    folder = tmp_path_factory.mktemp("report")
    copy_data("2.5.1", folder / "logs")
    finished = analyze("logs", "--report", "report.html", "--out", "tables", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[-2:] == ["Written: tables", "Written: report.html"]
    assert sorted(one.name for one in folder.iterdir()) == ["logs", "report.html", "tables"]
    return folder


def test_every_analysis_has_its_parquet_table(made: Path) -> None:
    tables = {one.name: pq.read_table(made / "tables" / one.name) for one in ANALYSES}
    assert sorted(one.name for one in (made / "tables").iterdir()) == sorted(tables)
    empty = {name for name, table in tables.items() if table.num_rows == 0}
    assert empty == {"faults", "stalled"}
    assert sum(tables["topics"].column("records").to_pylist()) == 2782


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium (Debian's package chromium)")
def test_a_browser_shows_the_report_without_network_or_errors(made: Path, tmp_path: Path) -> None:
    page = tmp_path / "looked_at.html"
    page.write_text((made / "report.html").read_text() + LOOK)
    assert BROWSER is not None
    shown = subprocess.run(
        [
            BROWSER,
            *BROWSER_FLAGS,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shown.returncode == 0, shown.stderr
    assert "CONSOLE" not in shown.stderr
    title = shown.stdout.partition("<title>")[2].partition("</title>")[0]
    seen = json.loads(title.replace("&quot;", '"'))
    sections = {one.section for one in ANALYSES}
    assert seen["sections"] == len(sections)
    assert seen["charts"] == 6
    assert seen["tables"] >= 15
    assert seen["sentences"] >= 5
    assert (seen["invisible"], seen["fetched"]) == (0, 0)
