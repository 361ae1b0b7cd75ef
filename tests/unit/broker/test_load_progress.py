"""What an operator sees while many logs load."""

import io
import logging
from pathlib import Path

import pytest

from broker.load_progress import FEWEST_LOGS_FOR_A_BAR, LinesOfProgress, load_progress
from storage.log import Log
from storage.log_manager import LoadProgress
from tests.unit.storage.support import open_log


class Terminal(io.StringIO):
    """A screen that remembers all that it showed."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path)


def test_a_slow_start_says_now_and_then_how_far_it_is(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    seconds = 0
    report = LinesOfProgress(lambda: float(seconds))
    for loaded in range(1, 11):
        seconds += 1
        report(LoadProgress(loaded, 10, log))
    assert caplog.messages == [
        "Loaded 3 of 10 logs (30 %).",
        "Loaded 6 of 10 logs (60 %).",
        "Loaded 9 of 10 logs (90 %).",
    ]


def test_a_quick_start_says_nothing(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with load_progress(io.StringIO()) as report:
        for loaded in range(1, 1001):
            report(LoadProgress(loaded, 1000, log))
    assert caplog.messages == []


def test_a_terminal_shows_a_bar(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with load_progress(terminal) as report:
        for loaded in range(1, FEWEST_LOGS_FOR_A_BAR + 1):
            report(LoadProgress(loaded, FEWEST_LOGS_FOR_A_BAR, log))
    shown = terminal.getvalue()
    assert "Loading logs" in shown
    assert f"/{FEWEST_LOGS_FOR_A_BAR}" in shown
    assert shown.rstrip().endswith("\x1b[2K"), "it vanishes"


def test_a_few_logs_need_no_bar(log: Log) -> None:
    terminal = Terminal()
    with load_progress(terminal) as report:
        report(LoadProgress(1, 1, log))
    assert terminal.getvalue() == ""
